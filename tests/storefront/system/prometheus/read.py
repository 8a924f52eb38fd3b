"""Reads the text format of Prometheus from standard input with the parser of its official client.

Prints JSON: for each family its type, its help and its samples as [name, labels, value].
"""

import json
import sys

from prometheus_client.parser import text_string_to_metric_families

families = {
    family.name: {
        "type": family.type,
        "help": family.documentation,
        "samples": [[sample.name, sample.labels, sample.value] for sample in family.samples],
    }
    for family in text_string_to_metric_families(sys.stdin.read())
}
json.dump(families, sys.stdout)
