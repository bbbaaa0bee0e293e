/** A part of a text: offsets in UTF-16 code units, end exclusive. */
export interface Span {
  readonly start: number;
  readonly end: number;
}

/**
 * A list of spans of one text in rising order. It takes eight bytes for each span, since a table of 20 MB can have ten
 * million rows.
 */
export interface SpanList {
  /** Appends a span, which must start at or after the end of the last one. */
  add(start: number, end: number): void;
  /**
   * Returns the span that contains an offset; undefined if there is none, or if the offset is at the span's start or
   * end.
   */
  around(offset: number): Span | undefined;
}

export function createSpanList(): SpanList {
  let offsets = new Uint32Array(64);
  let count = 0;
  return {
    add(start, end) {
      if (2 * count === offsets.length) {
        const longer = new Uint32Array(2 * offsets.length);
        longer.set(offsets);
        offsets = longer;
      }
      offsets[2 * count] = start;
      offsets[2 * count + 1] = end;
      count++;
    },
    around(offset) {
      let low = 0;
      let high = count;
      while (low < high) {
        const middle = (low + high) >>> 1;
        if ((offsets[2 * middle] ?? 0) < offset) low = middle + 1;
        else high = middle;
      }
      if (low === 0) return undefined;
      const start = offsets[2 * low - 2] ?? 0;
      const end = offsets[2 * low - 1] ?? 0;
      return offset < end ? { start, end } : undefined;
    },
  };
}
