# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
# Comparisons that cannot be made.
kymo diff
echo "$?"
kymo diff one
kymo diff one two three
kymo diff one two
echo "$?"
kymo diff --by lines one two
kymo diff --format markdwon one two
kymo diff --format folded --by line one two
kymo diff --measure time one two
kymo diff --top many one two
kymo diff --fail-if total one two
kymo diff --fail-if 'total>3' one two
kymo diff --fail-if '>3%' one two
echo "$?"
