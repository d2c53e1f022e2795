"""The steps of build.py: tools, engine, page, output."""
