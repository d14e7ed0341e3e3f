# SPDX-License-Identifier: Apache-2.0
"""What can be written on the command line."""

from __future__ import annotations

from argparse import ArgumentParser, RawDescriptionHelpFormatter, _SubParsersAction

_DESCRIPTION = """\
Does a model of sequences fit the data? Where, how and by how much does it fail?

exit codes: 0 the model may fit (or the command has done its work), 1 the model does not fit (check), 2 an error
"""
_EXAMPLES = """\
examples:
  pyro-ksd check names.txt --fit markov --order 2 --html report.html
  pyro-ksd check clicks.csv --by visit --symbol page --order-by time --model my_models:clicks --output check.nc
  pyro-ksd show check.nc
  pyro-ksd report check.nc --html report.html
  pyro-ksd compare reads.fasta.gz --model first=my_models:first --model second=my_models:second
"""


def parser() -> ArgumentParser:
    """The parser of all commands; it needs neither torch nor Pyro.

    >>> parser().parse_args(["check", "names.txt", "--fit", "markov", "--order", "2"]).order
    2
    """
    whole = ArgumentParser(
        prog="pyro-ksd", description=_DESCRIPTION, epilog=_EXAMPLES, formatter_class=RawDescriptionHelpFormatter
    )
    commands = whole.add_subparsers(dest="command", required=True, metavar="COMMAND")
    _add_check(commands)
    _add_compare(commands)
    show = commands.add_parser("show", help="print a saved result")
    show.add_argument("result", metavar="FILE", help="a file that --output has written, or result.to_netcdf(path)")
    report = commands.add_parser("report", help="write a saved result as a report, one HTML file")
    report.add_argument("result", metavar="FILE", help="a file that --output has written, or result.to_netcdf(path)")
    report.add_argument("--html", metavar="FILE", required=True, help="the file to write")
    report.add_argument("--title", metavar="WORDS", help="what stands at the top")
    return whole


def _add_check(commands: _SubParsersAction[ArgumentParser]) -> None:
    check = commands.add_parser("check", help="check a model on data")
    _add_data(check)
    which = check.add_argument_group("the model, one of these")
    model = which.add_mutually_exclusive_group(required=True)
    model.add_argument(
        "--model",
        metavar="MODULE:NAME",
        help="a Pyro program or another model in a Python module, such as my_models:clicks for my_models.py in this "
        "folder; whatever ksd_check takes",
    )
    model.add_argument("--fit", choices=["markov"], help="a Markov chain, fitted to a part of the data with back-off")
    which.add_argument("--order", type=int, metavar="K", help="of the chain: how many symbols the next one depends on")
    which.add_argument(
        "--holdout",
        type=float,
        metavar="SHARE",
        help="with --fit: the share of the data to check on (0.2); the rest is for the fit",
    )
    _add_test(check)
    check.add_argument("--tolerance", type=float, metavar="SHARE", help="how much misfit is too little to matter")
    check.add_argument("--num-bootstrap", type=int, default=500, metavar="B", help="the number of null draws (500)")
    check.add_argument("--seed", type=int, default=0, help="of all random numbers (0)")
    _add_output(check)


def _add_compare(commands: _SubParsersAction[ArgumentParser]) -> None:
    compare = commands.add_parser("compare", help="compare models on data")
    _add_data(compare)
    compare.add_argument(
        "--model",
        metavar="LABEL=MODULE:NAME",
        action="append",
        required=True,
        help="a model with a label of your choice; write it at least twice",
    )
    _add_test(compare)
    _add_output(compare)


def _add_data(parser: ArgumentParser) -> None:
    parser.add_argument("data", metavar="DATA", help="text, CSV, TSV, JSON lines, FASTA, FASTQ or Parquet, also .gz")
    reading = parser.add_argument_group("how to read the data, as in pyro_ksd.read")
    reading.add_argument("--format", help="if the name of the file does not tell: text, csv, tsv, jsonl, fasta, ...")
    reading.add_argument("--sep", help="what separates symbols, such as ' '; without it, characters are symbols")
    reading.add_argument(
        "--alphabet", help="all symbols, such as ACGT, or home,search,buy; left out, those of the data"
    )
    reading.add_argument("--column", help="the column that has the sequences")
    reading.add_argument("--by", help="for a log with one event a row: the column that tells the sequences apart")
    reading.add_argument("--symbol", help="for a log: the column of symbols")
    reading.add_argument("--order-by", help="for a log: the column that orders the events of a sequence")
    reading.add_argument("--skip-unknown", action="store_true", help="leave out sequences with other symbols")


def _add_test(parser: ArgumentParser) -> None:
    parser.add_argument("--views", nargs="+", metavar="VIEW", help="what to look at, such as content-2 length")
    parser.add_argument("--end", metavar="SYMBOL", help="the symbol with which every sequence ends")
    parser.add_argument("--level", type=float, default=0.05, help="the p-value up to which a model is rejected (0.05)")


def _add_output(parser: ArgumentParser) -> None:
    parser.add_argument("--html", metavar="FILE", help="write a report, one HTML file")
    parser.add_argument("--output", metavar="FILE", help="save the result as a netCDF file, such as check.nc")
