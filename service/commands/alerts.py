"""`opsleuth alerts`: the outcome of the alerts that the service received."""

import sys
from dataclasses import fields

import click

from opsleuth.checkpoints.errors import NotFoundError
from opsleuth.checkpoints.service.received_alerts import (
    ALERT_OUTCOMES,
    AlertReceipt,
    ReceiptFilter,
)
from opsleuth.console import event_lines
from opsleuth.console.options import CliCommand, count_option, current_options
from opsleuth.console.output import screen_for_options, write_note
from opsleuth.console.store_access import open_store_for_reading


@click.command("alerts", cls=CliCommand)
@click.option("--team", required=True, metavar="NAME", help="The team that the alerts were sent to.")
@click.option("--run", metavar="RUN", help="Only those of this run.")
@click.option("--outcome", type=click.Choice(ALERT_OUTCOMES), help="Only those that ended like this.")
@click.option("--name", metavar="ALERT", help="Only alerts of this name.")
@click.option("--before", type=click.IntRange(1), metavar="N", help="Only those received before number N.")
@count_option("--limit", 50, "The most to show.", most=100_000)
def list_alerts(
    team: str, run: str | None, outcome: str | None, name: str | None, before: int | None, limit: int
) -> int:
    """List the outcome of each received alert, and why; newest first."""
    options = current_options()
    chosen = next((one for one in ALERT_OUTCOMES if one == outcome), None)
    wanted = ReceiptFilter(run=run, outcome=chosen, name=name, before=before)
    try:
        with open_store_for_reading(options) as store:
            found = store.receipts.list(team, wanted, limit)
    except NotFoundError:  # no database yet means no alerts yet
        found = ()
    if options.json:
        listed = [{one.name: getattr(receipt, one.name) for one in fields(receipt)} for receipt in found]
        event_lines.write_json(sys.stdout, {"alerts": listed})
    elif found:
        screen = screen_for_options(options)
        for receipt in found:
            for line in _format_receipt(receipt):
                screen.whole(line, "    ")
    else:
        write_note(f"team {team} has received no alert that fits")
    return 0


def _format_receipt(receipt: AlertReceipt) -> list[str]:
    """Two lines: what came, and its outcome and why."""
    what = " ".join(filter(None, (receipt.name or "-", receipt.service, receipt.severity)))
    where = f" {receipt.run}" if receipt.run else ""
    return [f"{receipt.id}  {receipt.received}  {what}", f"  {receipt.outcome}{where}: {receipt.reason}"]
