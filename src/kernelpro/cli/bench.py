"""``kernelpro bench``: suites and studies."""

from __future__ import annotations

import typer

from kernelpro.cli import bench_ablation, bench_kernelbench

app = typer.Typer(
    help="Suites and studies: KernelBench, ablations.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.add_typer(bench_kernelbench.app, name="kernelbench")
bench_ablation.register(app)
