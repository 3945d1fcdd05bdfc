"""The 256 cases of marching cubes: the triangles of a cube with given inside corners.

Corner x + 2 y + 4 z of a cube is at (x, y, z), and a case is the sum of 2^corner over the inside
corners. Edge 4 a + i is parallel to axis a; the bits of i are the coordinates of the edge on the
two other axes, the lower axis first. Where inside corners face each other diagonally across a side
of the cube, the surface separates them.

The method is that of W. Lorensen and H. Cline ("Marching cubes", SIGGRAPH 1987). The triangulation
of its polygons, and the order of the triangles, are those of MarchingCubeCpp (A. Paris), which
MuJoCo uses.
"""

from __future__ import annotations

import numpy as np

# Four cases per row, from 0. A word is a triangle, a digit one of the edges that it connects.
_CASES = """
    -                   | 048                 | 509                 | 495 489
    1a4                 | 180 1a8             | 1a4 950             | 51a 5a9 9a8
    b15                 | 5b1 804             | 0b1 09b             | 148 18b b89
    a5b a45             | 05b 0b8 8ba         | 409 49a a9b         | 8ba 89b
    286                 | 062 046             | 950 628             | 295 256 654
    41a 286             | a62 a21 120         | 095 862 1a4         | 61a 621 251 295
    286 15b             | 604 620 b15         | b09 b10 628         | 461 629 169 19b
    5a4 5ba 286         | 2a6 25a 5ba 052     | 286 a9b a49 409     | 2a6 29a 9ba
    927                 | 048 792             | 250 275             | 827 874 475
    1a4 279             | 180 1a8 792         | 250 275 a41         | 827 871 175 a81
    b15 279             | 048 5b1 279         | 7b1 712 210         | 482 421 127 17b
    a5b a45 279         | 792 8ba 80b 05b     | ba7 a40 7a0 702     | 782 7b8 ba8
    879 867             | 904 947 746         | 086 065 567         | 467 475
    786 798 1a4         | 796 61a 916 901     | a41 567 506 086     | a51 a65 675
    879 867 15b         | 15b 746 794 904     | 086 06b b67 10b     | 17b 147 467
    4ba 45b 698 679     | 670 ba0 a60 5b0 790 | ba0 670 7b0 860 a40 | 67b 6ba
    36a                 | a36 048             | 36a 095             | 948 954 36a
    341 364             | 680 603 301         | 341 364 950         | 958 836 538 513
    36a 5b1             | 15b 480 36a         | 0b1 09b 6a3         | 6a3 b89 b18 148
    b36 b65 564         | 836 803 0b3 05b     | 6b3 60b 09b 406     | 6b3 68b 89b
    2a3 28a             | 4a3 430 032         | a28 a32 509         | 34a 394 954 293
    841 812 213         | 013 032             | 509 213 281 841     | 529 512 132
    2a3 28a 5b1         | b15 032 043 4a3     | 38a 328 19b 109     | 9b4 324 294 a34 b14
    5b4 428 b24 b32     | b05 b30 320         | 324 9b4 b34 094 284 | 329 39b
    792 a36             | 279 6a3 048         | 527 502 a36         | 36a 475 487 827
    436 413 927         | 927 301 360 680     | 164 136 075 027     | 138 758 518 278 368
    36a 792 15b         | 048 6a3 792 15b     | a36 210 271 7b1     | 36a b17 127 142 482
    279 564 5b6 b36     | 279 806 036 053 5b3 | 02b 64b 40b 36b 27b | 683 8b3 87b 827
    379 39a a98         | a04 a30 390 379     | 8a0 a37 0a7 075     | 34a 374 754
    184 178 798 371     | 937 903 013         | 758 138 378 418 508 | 137 175
    5b1 a98 a39 379     | 15b a34 304 370 790 | 8a7 107 087 b17 a37 | 37a 74a 714 7b1
    453 983 843 793 5b3 | 907 037 0b3 05b     | 084 37b             | 7b3
    73b                 | 048 3b7             | 509 3b7             | 495 489 3b7
    b73 41a             | 81a 801 73b         | 1a4 b73 095         | 3b7 9a8 95a 51a
    173 157             | 715 731 804         | 973 930 031         | 148 187 789 317
    3a4 347 745         | 80a a73 07a 057     | a40 a03 309 397     | 397 3a9 a89
    286 b73             | 062 046 b73         | 286 950 3b7         | b73 654 625 295
    3b7 a41 286         | 73b 120 1a2 a62     | 1a4 862 950 3b7     | 3b7 62a 21a 291 951
    173 157 862         | 246 204 357 315     | 628 031 093 973     | 469 319 149 739 629
    862 745 734 3a4     | 57a 20a 05a 62a 73a | 286 739 309 3a0 a40 | 296 9a6 93a 973
    392 3b9             | 392 3b9 480         | b50 b03 302         | 54b 482 b42 b23
    93b 923 41a         | 0a8 01a 2b9 23b     | 41a 302 3b0 b50     | 235 a85 825 1a5 3b5
    592 521 123         | 804 123 152 592     | 031 023             | 814 821 231
    3a4 349 945 239     | a85 235 3a5 925 805 | 43a 403 023         | 23a 2a8
    63b 6b8 8b9         | 63b 6b0 0b9 460     | 863 830 03b 0b5     | b63 b56 546
    1a4 8b9 86b 63b     | 016 b96 906 3b6 1a6 | 1a4 50b 03b 083 863 | a61 651 6b5 63b
    985 863 583 531     | 319 469 639 049 159 | 608 630 310         | 314 346
    983 453 593 a43 863 | 3a6 059             | 638 308 340 3a4     | 3a6
    6b7 6ab             | b6a b76 048         | 6b7 6ab 095         | 854 895 a76 ab7
    1b7 174 476         | 068 0b6 b76 1b0     | 950 476 417 1b7     | 891 761 681 b71 951
    a15 a56 657         | 048 657 6a5 a15     | 769 6a1 961 910     | 761 891 971 481 6a1
    476 457             | 068 056 576         | 940 974 764         | 897 876
    728 78b b8a         | b7a a04 70a 720     | 095 b8a b78 728     | ab2 542 4a2 952 b72
    428 412 172 1b7     | 71b 721 201         | 095 418 128 1b2 b72 | 519 129 172 1b7
    872 817 157 a18     | 20a 57a 72a 15a 04a | 107 8a7 a17 287 097 | 14a 297
    872 847 457         | 205 257             | 842 472 497 409     | 972
    26a 2a9 9ab         | 480 9ab 92a 26a     | 26a 2a5 5ab 025     | 542 ab2 b52 6a2 482
    416 692 196 1b9     | b96 016 1b6 806 926 | 64b 02b 26b 50b 41b | 268 1b5
    6a1 612 215 259     | 048 925 215 261 6a1 | a26 a12 102         | a16 126 182 148
    259 265 645         | 058 568 526 592     | 026 064             | 268
    8ab 8b9             | 490 4a9 ab9         | 0b5 08b 8ab         | ab5 a54
    184 1b8 b98         | 01b 0b9             | 1b4 b84 b08 b50     | b51
    5a1 59a 98a         | 4a0 a90 a59 a15     | 108 18a             | 14a
    459 498             | 590                 | 084                 | -
"""


def _triangles() -> tuple[np.ndarray, np.ndarray]:
    cases = [case.split() for row in _CASES.strip().splitlines() for case in row.split("|")]
    words = [[word for word in case if word != "-"] for case in cases]
    count = np.array([len(case) for case in words])
    edges = np.zeros((len(words), count.max(), 3), np.intp)
    for case, triangles in enumerate(words):
        for i, word in enumerate(triangles):
            edges[case, i] = [int(digit, 16) for digit in word]
    return count, edges


COUNT, TRIANGLES = _triangles()
"""How many triangles a case has, (256,), and the edges at their corners, (256, 5, 3)."""
