"""What several tests share: references by enumeration, random problems, readers of what we write."""
