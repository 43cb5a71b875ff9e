"""Exporters for runtimes, one file each: a plan to the files that configure a runtime.

Every module here is an exporter by its file's name: ``MEANING`` (one line), ``reasons_against(plan)`` and
``write(plan)``; see docs/adding-an-exporter.md.
"""
