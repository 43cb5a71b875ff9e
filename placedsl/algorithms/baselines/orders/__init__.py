"""Methods of MTPP (Xie et al. 2023): orders of the operators, each divided into stages as well as it can be."""
