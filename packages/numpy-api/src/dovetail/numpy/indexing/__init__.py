"""indexing"""
