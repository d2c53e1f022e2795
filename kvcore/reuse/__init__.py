"""Prefix reuse: will the cache be hit, and what is evicted?"""
