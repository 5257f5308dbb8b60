"""Provide strict servers that imitate providers and enforce their rules. This package imports no other package of
`actors`.
"""
