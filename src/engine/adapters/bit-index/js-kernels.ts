/**
 * The inner loops of a search over sign bits (the kernels) in plain JavaScript, for machines without WebAssembly or its
 * SIMD. Columns are added for 32 rows at a time; WebAssembly adds 128. A table gives the number of bits of each byte;
 * WebAssembly has one instruction for 64 bits.
 */

import {
  BATCH_COLUMNS,
  CANDIDATE_BYTES,
  COLUMN_BYTES,
  COMPONENT_BITS,
  type KernelMemory,
  type Kernels,
  type Layout,
  MAX_PAGES,
  PAGE,
  PLANES,
  SEGMENT_ROWS,
  START_BYTES,
  TURNED_ROWS,
} from './kernels.ts';

/** Number of rows whose bits are in one 32-bit word of a column. */
const WORD_BITS = 32;

/** Number of set bits of each byte, by its value. */
const BITS_OF_BYTE = Uint8Array.from({ length: 256 }, (_, byte) => {
  let bits = 0;
  for (let rest = byte; rest !== 0; rest &= rest - 1) bits += 1;
  return bits;
});

/** Creates memory with the threads' working areas but without rows. */
export function createJsMemory({ firstSegment }: Layout): SharedArrayBuffer {
  return new SharedArrayBuffer(firstSegment, { maxByteLength: MAX_PAGES * PAGE });
}

/** Creates the kernels for codes of one layout in a memory, with the interface to grow that memory. */
export function createJsKernels(
  layout: Layout,
  buffer: SharedArrayBuffer,
): { readonly memory: KernelMemory; readonly kernels: Kernels } {
  const views = viewsOf(buffer);
  return {
    memory: {
      buffer,
      grow(pages) {
        if (pages > 0) buffer.grow(buffer.byteLength + pages * PAGE);
      },
    },
    kernels: {
      turn: (codes, columns) => turn(views(), layout, codes, columns),
      addFirst: (choice, segment, from, end) =>
        addColumns(views(), { layout, choice, segment, from, end, isFirst: true, countsClear: true }),
      addClear: (choice, segment, from, end) =>
        addColumns(views(), { layout, choice, segment, from, end, isFirst: false, countsClear: true }),
      addSet: (choice, segment, from, end) =>
        addColumns(views(), { layout, choice, segment, from, end, isFirst: false, countsClear: false }),
      collect: (from, row, endRow, labels, mask, label, start, counts, candidates) =>
        collect(views(), { layout, from, row, endRow, labels, mask, label, start, counts, candidates }),
      keep: (candidates, end, limit, ties) => keep(views(), candidates, end, limit, ties),
      measure: (candidates, end, query, counts) => measure(views(), layout, { candidates, end, query, counts }),
      estimate: (candidates, end, components) => estimate(views(), layout, { candidates, end, components }),
    },
  };
}

/** One memory as bytes and as 32-bit words. Addresses count bytes; divided by four they index words. */
interface Views {
  readonly bytes: Uint8Array;
  readonly words: Int32Array;
}

/**
 * Returns a function that returns views of the whole memory as it is at the call. The views have a fixed length, since
 * views that track the length are slower. They are made anew once the memory has grown.
 */
function viewsOf(buffer: SharedArrayBuffer): () => Views {
  let views: Views | undefined;
  return () => {
    const length = buffer.byteLength;
    if (views?.bytes.length !== length)
      views = { bytes: new Uint8Array(buffer, 0, length), words: new Int32Array(buffer, 0, length / 4) };
    return views;
  };
}

/**
 * Transposes blocks of 8 by 8 bits: one byte of eight rows becomes one byte of eight columns ("Hacker's Delight", 7-3).
 */
function turn({ bytes }: Views, { codeBytes }: Layout, codes: number, columns: number): void {
  for (let rows = 0; rows < TURNED_ROWS; rows += 8) {
    for (let byte = 0; byte < codeBytes; byte += 1) {
      let low = 0;
      let high = 0;
      for (let row = 0, at = codes + rows * codeBytes + byte; row < 4; row += 1, at += codeBytes) {
        low |= bytes[at]! << (8 * row);
        high |= bytes[at + 4 * codeBytes]! << (8 * row);
      }
      low = transposeHalf(low);
      high = transposeHalf(high);
      const swapped = (low ^ (high << 4)) & 0xf0f0f0f0;
      low ^= swapped;
      high ^= swapped >>> 4;
      for (let bit = 0, column = columns + 8 * byte * COLUMN_BYTES + rows / 8; bit < 4; bit += 1) {
        bytes[column] = low >>> (8 * bit);
        bytes[column + 4 * COLUMN_BYTES] = high >>> (8 * bit);
        column += COLUMN_BYTES;
      }
    }
  }
}

/** Transposes the two blocks of four by four bits in four bytes. */
function transposeHalf(half: number): number {
  const pairs = (half ^ (half >>> 7)) & 0x00aa00aa;
  const paired = half ^ pairs ^ (pairs << 7);
  const fours = (paired ^ (paired >>> 14)) & 0x0000cccc;
  return paired ^ fours ^ (fours << 14);
}

interface ColumnSum {
  readonly layout: Layout;
  readonly choice: number;
  readonly segment: number;
  readonly from: number;
  readonly end: number;
  /** Whether the sums begin at their start value; false to continue the sums of earlier columns. */
  readonly isFirst: boolean;
  /** Whether clear bits (0) are counted; false if set bits (1) are. */
  readonly countsClear: boolean;
}

const COLUMN_WORDS = COLUMN_BYTES / 4;
const START_WORDS = START_BYTES / PLANES / 4;
/** Positions of a batch's columns, in words. All calls share this array, which saves the time to allocate one. */
const columns = new Int32Array(BATCH_COLUMNS);

/**
 * Adds the columns of a batch to bit-sliced sums, four columns at a time: carry-save adders give a bit of weight 1, a
 * bit of weight 2 and a carry of weight 4, which is added to the higher planes.
 */
function addColumns({ words }: Views, { layout, choice, segment, from, end, isFirst, countsClear }: ColumnSum): void {
  for (let place = 0; place < BATCH_COLUMNS; place += 1)
    columns[place] = (words[((choice + START_BYTES) >>> 2) + place]! + segment) >>> 2;
  const flip = countsClear ? -1 : 0;
  const [origin, step] = isFirst ? [choice >>> 2, START_WORDS] : [layout.sums >>> 2, COLUMN_WORDS];
  const sums = layout.sums >>> 2;
  for (let at = from >>> 2; at < end >>> 2; at += 1) {
    const source = isFirst ? origin : origin + at;
    let ones = words[source]!;
    let twos = words[source + step]!;
    let fours = words[source + 2 * step]!;
    let eights = words[source + 3 * step]!;
    let sixteens = words[source + 4 * step]!;
    let plane5 = words[source + 5 * step]!;
    let plane6 = words[source + 6 * step]!;
    let plane7 = words[source + 7 * step]!;
    for (let place = 0; place < BATCH_COLUMNS; place += 4) {
      const a = words[columns[place]! + at]! ^ flip;
      const b = words[columns[place + 1]! + at]! ^ flip;
      const c = words[columns[place + 2]! + at]! ^ flip;
      const d = words[columns[place + 3]! + at]! ^ flip;
      let sum = ones ^ a;
      const firstTwo = (ones & a) | (sum & b);
      ones = sum ^ b;
      sum = ones ^ c;
      const secondTwo = (ones & c) | (sum & d);
      ones = sum ^ d;
      sum = twos ^ firstTwo;
      let carry = (twos & firstTwo) | (sum & secondTwo);
      twos = sum ^ secondTwo;
      let next = fours & carry;
      fours ^= carry;
      carry = eights & next;
      eights ^= next;
      next = sixteens & carry;
      sixteens ^= carry;
      carry = plane5 & next;
      plane5 ^= next;
      plane7 ^= plane6 & carry;
      plane6 ^= carry;
    }
    const target = sums + at;
    words[target] = ones;
    words[target + COLUMN_WORDS] = twos;
    words[target + 2 * COLUMN_WORDS] = fours;
    words[target + 3 * COLUMN_WORDS] = eights;
    words[target + 4 * COLUMN_WORDS] = sixteens;
    words[target + 5 * COLUMN_WORDS] = plane5;
    words[target + 6 * COLUMN_WORDS] = plane6;
    words[target + 7 * COLUMN_WORDS] = plane7;
  }
}

interface Collection {
  readonly layout: Layout;
  readonly from: number;
  readonly row: number;
  readonly endRow: number;
  readonly labels: number;
  readonly mask: number;
  readonly label: number;
  readonly start: number;
  readonly counts: number;
  readonly candidates: number;
}

function collect({ words }: Views, collection: Collection): number {
  const { layout, from, row, endRow, mask, label, start } = collection;
  const [sums, labels, counts] = [layout.sums >>> 2, collection.labels >>> 2, collection.counts >>> 2];
  let candidate = collection.candidates >>> 2;
  for (let at = from >>> 2, first = 8 * from; row + first < endRow; at += 1, first += WORD_BITS) {
    for (let below = ~words[sums + (PLANES - 1) * COLUMN_WORDS + at]!; below !== 0; below &= below - 1) {
      const bit = WORD_BITS - 1 - Math.clz32(below & -below);
      const found = first + bit;
      if (row + found >= endRow) break;
      if ((words[labels + found]! & mask) !== label) continue;
      let distance = -start;
      for (let plane = 0; plane < PLANES - 1; plane += 1)
        distance += ((words[sums + plane * COLUMN_WORDS + at]! >>> bit) & 1) << plane;
      words[candidate] = row + found;
      words[candidate + 1] = distance;
      words[counts + distance]! += 1;
      candidate += 2;
    }
  }
  return 4 * candidate;
}

function keep({ words }: Views, candidates: number, end: number, limit: number, ties: number): number {
  let kept = candidates >>> 2;
  let tiesLeft = ties;
  for (let at = candidates >>> 2; at < end >>> 2; at += 2) {
    const measured = words[at + 1]!;
    if (measured > limit || (measured === limit && tiesLeft === 0)) continue;
    if (measured === limit) tiesLeft -= 1;
    words[kept] = words[at]!;
    words[kept + 1] = measured;
    kept += 2;
  }
  return 4 * kept;
}

interface Measurement {
  readonly candidates: number;
  readonly end: number;
  readonly query: number;
  readonly counts: number;
}

function measure({ bytes, words }: Views, layout: Layout, { candidates, end, query, counts }: Measurement): void {
  for (let at = candidates >>> 2; at < end >>> 2; at += CANDIDATE_BYTES / 4) {
    const code = codeOf(layout, words[at]!);
    let distance = 0;
    for (let byte = 0; byte < layout.codeBytes; byte += 1)
      distance += BITS_OF_BYTE[bytes[code + byte]! ^ bytes[query + byte]!]!;
    words[at + 1] = distance;
    words[(counts >>> 2) + distance]! += 1;
  }
}

interface Estimation {
  readonly candidates: number;
  readonly end: number;
  readonly components: number;
}

/**
 * Computes the estimates of candidates (`Kernels.estimate`) with a table for the question: for each byte of a code and
 * each value of this byte, the sum of the question's components whose bits are set in it.
 */
function estimate({ bytes, words }: Views, layout: Layout, { candidates, end, components }: Estimation): number {
  const { codeBytes } = layout;
  const sums = new Int16Array(256 * codeBytes);
  for (let byte = 0; byte < codeBytes; byte += 1) {
    for (let value = 1; value < 256; value += 1) {
      const rest = value & (value - 1);
      const bit = WORD_BITS - 1 - Math.clz32(value ^ rest);
      sums[256 * byte + value] =
        rest === 0
          ? componentAt(bytes, layout, components + byte, bit)
          : sums[256 * byte + rest]! + sums[256 * byte + (value ^ rest)]!;
    }
  }
  for (let at = candidates >>> 2; at < end >>> 2; at += CANDIDATE_BYTES / 4) {
    const code = codeOf(layout, words[at]!);
    let sum = 0;
    for (let byte = 0; byte < codeBytes; byte += 1) sum += sums[256 * byte + bytes[code + byte]!]!;
    words[at + 1] = sum;
  }
  return 0;
}

/**
 * Reads a component of the question in two's complement. Its bits are `codeBytes` bytes apart, the sign bit last.
 * @param address address of the byte with the component's lowest bit
 * @param bit position of the component's bits in their bytes, 0..7
 */
function componentAt(bytes: Uint8Array, { codeBytes }: Layout, address: number, bit: number): number {
  let value = 0;
  for (let plane = 0; plane < COMPONENT_BITS; plane += 1)
    value |= ((bytes[address + plane * codeBytes]! >> bit) & 1) << plane;
  const sign = 1 << (COMPONENT_BITS - 1);
  return value & sign ? value - 2 * sign : value;
}

/** Returns the address of a row's code (the sign bits of its vector). */
function codeOf({ firstSegment, segmentBytes, codeBytes }: Layout, row: number): number {
  return firstSegment + Math.floor(row / SEGMENT_ROWS) * segmentBytes + (row % SEGMENT_ROWS) * codeBytes;
}
