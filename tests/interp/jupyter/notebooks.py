# SPDX-License-Identifier: MIT
"""Percent files as notebooks: what Jupytext would do, as far as the tutorials need it."""
import nbformat


def from_percent(path):
    with open(path, encoding="utf-8") as f:
        text = f.read()
    cells = []
    for block in text.split("\n-- %%")[1:]:
        head, _, body = block.partition("\n")
        if "[markdown]" in head:
            lines = [line[3:] if line.startswith("-- ") else line.lstrip("-") for line in body.splitlines()]
            cells.append(nbformat.v4.new_markdown_cell("\n".join(lines)))
        elif body.strip():
            cells.append(nbformat.v4.new_code_cell(body.strip()))
    return with_kernel(cells)


def with_kernel(cells):
    return nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": {"name": "quoll", "display_name": "Quoll"}})
