/** A part of a text that both versions contain (`same`), or only the earlier (`gone`) or the later one (`new`). */
export interface Piece {
  readonly kind: 'same' | 'gone' | 'new';
  readonly text: string;
}

/** Greatest number of words, including the blanks between them, of each version that are compared. */
const MAX_WORDS = 1_500;

/**
 * Compares two versions of a text word by word, by their longest common subsequence. If one has more than about 750
 * words (`MAX_WORDS`), the result is the whole earlier text as `gone` and the whole later one as `new`.
 */
export function differences(before: string, after: string): Piece[] {
  const old = before.split(/(\s+)/);
  const now = after.split(/(\s+)/);
  if (old.length > MAX_WORDS || now.length > MAX_WORDS) {
    return [
      { kind: 'gone', text: before },
      { kind: 'new', text: after },
    ];
  }
  return joined(walk(old, now, commonLengths(old, now)));
}

/** Returns, for each pair of positions, the length of the longest common subsequence of the words from there on. */
function commonLengths(old: readonly string[], now: readonly string[]): Uint16Array[] {
  const lengths = Array.from({ length: old.length + 1 }, () => new Uint16Array(now.length + 1));
  for (let i = old.length - 1; i >= 0; i--) {
    for (let j = now.length - 1; j >= 0; j--) {
      lengths[i]![j] =
        old[i] === now[j] ? lengths[i + 1]![j + 1]! + 1 : Math.max(lengths[i + 1]![j]!, lengths[i]![j + 1]!);
    }
  }
  return lengths;
}

function walk(old: readonly string[], now: readonly string[], lengths: readonly Uint16Array[]): Piece[] {
  const pieces: Piece[] = [];
  let i = 0;
  let j = 0;
  while (i < old.length || j < now.length) {
    if (i < old.length && j < now.length && old[i] === now[j]) {
      pieces.push({ kind: 'same', text: old[i]! });
      i++;
      j++;
    } else if (i < old.length && (j === now.length || lengths[i + 1]![j]! >= lengths[i]![j + 1]!)) {
      pieces.push({ kind: 'gone', text: old[i++]! });
    } else pieces.push({ kind: 'new', text: now[j++]! });
  }
  return pieces;
}

function joined(pieces: readonly Piece[]): Piece[] {
  const out: Piece[] = [];
  for (const { kind, text } of pieces) {
    const last = out.at(-1);
    if (last?.kind === kind) out[out.length - 1] = { kind, text: last.text + text };
    else out.push({ kind, text });
  }
  return out.filter(({ text }) => text !== '');
}
