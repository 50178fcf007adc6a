"""`pysedna crds`: prints the custom resource definitions, ready for `kubectl apply -f -`."""

import click


@click.command("crds")
def command() -> None:
    """Print the Sedna custom resource definitions as YAML."""
    from io import StringIO

    from ruamel.yaml import YAML

    from pysedna.api.crds import crds

    yaml = YAML(typ="safe")
    yaml.default_flow_style = False
    yaml.explicit_start = True
    yaml.sort_base_mapping_type_on_output = False  # type: ignore[assignment]
    text = StringIO()
    yaml.dump_all(crds(), text)
    click.echo(text.getvalue(), nl=False)
