// SPDX-License-Identifier: Apache-2.0
// Stein features of n-grams of one length in the square-root form, as a plain loop over the edits of a block:
// list the windows that an edit destroys and creates, add up equal ones, change the features.
#include <math.h>
#include <stdint.h>

static int64_t code_at(const int64_t *x, int64_t end, int64_t t, int64_t size) {
    int64_t code = 0;
    for (int64_t i = end - t + 1; i <= end; i++) code = code * size + x[i];
    return code;
}

// counts [num_codes] must be 0; psi [N, num_codes] is added to; edits are in the order of their owners.
void add_block(const int64_t *tokens, int64_t columns, const int64_t *lengths, const int64_t *owner,
               const int64_t *start, int64_t removed, const int64_t *inserted, int64_t arrived, int64_t num_edits,
               const double *weights, int64_t t, int64_t size, int64_t num_codes, const double *root,
               int64_t *counts, double *psi) {
    int64_t y[4096], code[64], change[64];
    for (int64_t first = 0, last; first < num_edits; first = last) {
        int64_t row = owner[first], length = lengths[row];
        const int64_t *x = tokens + row * columns;
        double *own = psi + row * num_codes, common = 0;
        int64_t grown = length + arrived - removed;
        double scale = length < t ? 0 : 1 / sqrt(length - t + 1), new_scale = grown < t ? 0 : 1 / sqrt(grown - t + 1);
        for (int64_t end = t - 1; end < length; end++) counts[code_at(x, end, t, size)]++;
        for (last = first; last < num_edits && owner[last] == row; last++) {
            int64_t at = start[last], touched = 0;
            for (int64_t i = 0; i < at; i++) y[i] = x[i];
            for (int64_t i = 0; i < arrived; i++) y[at + i] = inserted[last * arrived + i];
            for (int64_t i = at + removed; i < length; i++) y[i + arrived - removed] = x[i];
            for (int64_t end = at > t - 1 ? at : t - 1; end < at + removed + t - 1 && end < length; end++) {
                code[touched] = code_at(x, end, t, size);
                change[touched++] = -1;
            }
            for (int64_t end = at > t - 1 ? at : t - 1; end < at + arrived + t - 1 && end < grown; end++) {
                code[touched] = code_at(y, end, t, size);
                change[touched++] = 1;
            }
            common += weights[last] * (new_scale - scale);
            for (int64_t i = 0; i < touched; i++) {
                for (int64_t j = i + 1; j < touched; j++) {
                    if (code[j] == code[i]) {
                        change[i] += change[j];
                        change[j] = 0;
                    }
                }
                int64_t count = counts[code[i]];
                if (change[i]) own[code[i]] += weights[last] * new_scale * (root[count + change[i]] - root[count]);
            }
        }
        for (int64_t end = t - 1; end < length; end++) {
            int64_t u = code_at(x, end, t, size);
            own[u] += common * root[counts[u]];
            counts[u] = 0;
        }
    }
}
