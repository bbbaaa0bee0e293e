import { assemble, control, f32, i16x8, i32, i64, local, v128, type Code, type WasmFunction } from './assembler.ts';

/**
 * The inner loops over sign bits, as WebAssembly made at run time: V8 turns `i64.popcnt` into one instruction, which plain JavaScript has
 * no way to say, and counts the differing bits of two 768-bit codes some ten times faster. Loops over the words of a code are unrolled, so
 * each width of codes has a module of its own.
 */

/** Codes lie in segments of so many, each at a fixed distance from the last: memory grows by whole segments and nothing is ever moved. */
export const SEGMENT_ROWS = 8_192;
/** Questions that one pass over a segment answers while it is in the processor's cache. */
export const LANES = 4;
/** What stands for the distance of a row that is left out; a power of two less one, above every distance. */
export const LEFT_OUT = 16_383;
/** Distances stay below LEFT_OUT. */
export const DIMENSIONS_MOST = 8_192;

const PAGE = 65_536;

/** Where things are in a memory, in bytes. A code is `headBytes` and, apart from them, `tailBytes`. */
export interface Layout {
  readonly headBytes: number;
  readonly tailBytes: number;
  /** One code to compare with, and a table of what each half byte of a code adds to the estimated dot product. */
  readonly query: number;
  readonly table: number;
  /** How many rows there are at each distance, up to LEFT_OUT. */
  readonly counts: number;
  /** Rows, and what was measured of each of them. */
  readonly list: number;
  readonly measured: number;
  readonly listMost: number;
  readonly firstSegment: number;
  readonly segmentBytes: number;
  /** Within a segment. */
  readonly tails: number;
  readonly distances: number;
  readonly flags: number;
}

export function layoutOf(dimensions: number, listMost: number): Layout {
  const words = Math.ceil(dimensions / 64);
  const headBytes = 8 * Math.ceil(words / 3);
  const tailBytes = 8 * words - headBytes;
  const table = LANES * 8 * words;
  const counts = table + 2 * 8 * words * 16 * 4;
  const list = counts + (LEFT_OUT + 1) * 4;
  const measured = list + listMost * 4;
  const tails = SEGMENT_ROWS * headBytes;
  const distances = tails + SEGMENT_ROWS * tailBytes;
  const flags = distances + LANES * SEGMENT_ROWS * 2;
  return {
    ...{ headBytes, tailBytes, query: 0, table, counts, list, measured, listMost, tails, distances, flags },
    firstSegment: pages(measured + listMost * 4),
    segmentBytes: pages(flags + SEGMENT_ROWS),
  };
}

function pages(bytes: number): number {
  return Math.ceil(bytes / PAGE) * PAGE;
}

/** All take addresses; ends are exclusive, and nothing may be empty. */
export interface Kernels {
  /** Hamming distances, 16 bits each, of the heads of the rows from `heads` to `end` to the query's. */
  measureHeads(heads: number, end: number, query: number, distances: number): void;
  /** Makes LEFT_OUT of the distances of rows whose flags have one of `bits`. Eight rows at a time. */
  leaveOut(flags: number, end: number, bits: number, distances: number): void;
  /** Adds up the rows at each distance. */
  tally(distances: number, end: number, counts: number): void;
  /** Writes the numbers, from `row` on, of rows within `limit`, and one more behind them. @returns the end of the list */
  pick(distances: number, end: number, limit: number, row: number, list: number): number;
  /** Hamming distances of whole codes, 16 bits each, of the rows in the list. */
  measure(list: number, end: number, query: number, distances: number): void;
  /** Estimated dot products, float32, of the rows in the list: the query as it is with what the codes say. */
  estimate(list: number, end: number, estimates: number): void;
}

export function createKernels(layout: Layout, memory: WebAssembly.Memory): Kernels {
  const { exports } = new WebAssembly.Instance(moduleOf(layout), { env: { memory } });
  return exports as unknown as Kernels;
}

const modules = new Map<number, WebAssembly.Module>();

/** A module is the same for all memories with codes of its width. */
function moduleOf(layout: Layout): WebAssembly.Module {
  const width = layout.headBytes + layout.tailBytes;
  let made = modules.get(width);
  if (made === undefined) {
    const functions = [measureHeads(layout), leaveOut, tally, pick, measure(layout), estimate(layout)];
    modules.set(width, (made = new WebAssembly.Module(assemble(functions))));
  }
  return made;
}

const { get, set, tee } = local;

function measureHeads({ headBytes }: Layout): WasmFunction {
  const [heads, end, query, distances, words] = [0, 1, 2, 3, 4];
  const count = headBytes / 8;
  return {
    name: 'measureHeads',
    parameters: 4,
    locals: [[count, 'i64']],
    body: [
      ...range(count).map((word) => [...get(query), ...i64.load(8 * word), ...set(words + word)]),
      control.repeatWhile(
        [...get(distances), ...differences(heads, words, count), ...i32.fromI64, ...i32.store16()],
        advance(distances, 2),
        advance(heads, headBytes),
        [...get(heads), ...get(end), ...i32.lessThan],
      ),
    ],
  };
}

const leaveOut: WasmFunction = (() => {
  const [flags, end, bits, distances] = [0, 1, 2, 3];
  const none = [...i32.const(0), ...i16x8.splat];
  const hasOne = [...get(flags), ...v128.load8x8(), ...get(bits), ...i16x8.splat, ...v128.and];
  return {
    name: 'leaveOut',
    parameters: 4,
    locals: [],
    body: [
      control.repeatWhile(
        [...get(distances), ...get(distances), ...v128.load()],
        [...hasOne, ...none, ...i16x8.notEqual, ...i32.const(LEFT_OUT), ...i16x8.splat, ...v128.and],
        [...v128.or, ...v128.store()],
        advance(distances, 16),
        advance(flags, 8),
        [...get(flags), ...get(end), ...i32.lessThan],
      ),
    ],
  };
})();

const tally: WasmFunction = (() => {
  const [distances, end, counts, count] = [0, 1, 2, 3];
  return {
    name: 'tally',
    parameters: 3,
    locals: [[1, 'i32']],
    body: [
      control.repeatWhile(
        [...get(distances), ...i32.load16(), ...i32.const(2), ...i32.shiftLeft, ...get(counts), ...i32.add],
        [...tee(count), ...get(count), ...i32.load(), ...i32.const(1), ...i32.add, ...i32.store()],
        advance(distances, 2),
        [...get(distances), ...get(end), ...i32.lessThan],
      ),
    ],
  };
})();

/** Writes every row and then moves on or not: a branch would be guessed wrong for a tenth of them, and each wrong guess costs ten rows. */
const pick: WasmFunction = (() => {
  const [distances, end, limit, row, list] = [0, 1, 2, 3, 4];
  return {
    name: 'pick',
    parameters: 5,
    locals: [],
    returns: 'i32',
    body: [
      control.repeatWhile(
        [...get(list), ...get(row), ...i32.store()],
        [...get(distances), ...i32.load16(), ...get(limit), ...i32.lessOrEqual, ...i32.const(2), ...i32.shiftLeft],
        [...get(list), ...i32.add, ...set(list)],
        advance(row, 1),
        advance(distances, 2),
        [...get(distances), ...get(end), ...i32.lessThan],
      ),
      get(list),
    ],
  };
})();

function measure(layout: Layout): WasmFunction {
  const { headBytes, tailBytes } = layout;
  const [list, end, query, distances, head, tail, words] = [0, 1, 2, 3, 4, 5, 6];
  const [inHead, inTail] = [headBytes / 8, tailBytes / 8];
  const ofTail = inTail === 0 ? [] : [...differences(tail, words + inHead, inTail), ...i64.add];
  return {
    name: 'measure',
    parameters: 4,
    locals: [
      [2, 'i32'],
      [inHead + inTail, 'i64'],
    ],
    body: [
      ...range(inHead + inTail).map((word) => [...get(query), ...i64.load(8 * word), ...set(words + word)]),
      control.repeatWhile(
        addressesOf(layout, { list, head, tail }),
        [...get(distances), ...differences(head, words, inHead), ...ofTail, ...i32.fromI64, ...i32.store16()],
        advance(distances, 2),
        advance(list, 4),
        [...get(list), ...get(end), ...i32.lessThan],
      ),
    ],
  };
}

/** Sums in turn, since each addition would wait for the one before. */
const SUMS = 4;

function estimate(layout: Layout): WasmFunction {
  const { headBytes, tailBytes, table } = layout;
  const [list, end, estimates, head, tail, byte, sums] = [0, 1, 2, 3, 4, 5, 6];
  const addHalf = (place: number) => [
    ...[...i32.const(2), ...i32.shiftLeft, ...f32.load(table + 64 * place)],
    ...[...get(sums + (place % SUMS)), ...f32.add, ...set(sums + (place % SUMS))],
  ];
  const addByte = (at: number, offset: number, place: number) => [
    ...[...get(at), ...i32.load8(offset), ...tee(byte), ...i32.const(15), ...i32.and, ...addHalf(2 * place)],
    ...[...get(byte), ...i32.const(4), ...i32.shiftRight, ...addHalf(2 * place + 1)],
  ];
  return {
    name: 'estimate',
    parameters: 3,
    locals: [
      [3, 'i32'],
      [SUMS, 'f32'],
    ],
    body: [
      control.repeatWhile(
        addressesOf(layout, { list, head, tail }),
        range(SUMS).flatMap((sum) => [...f32.const0, ...set(sums + sum)]),
        range(headBytes).flatMap((at) => addByte(head, at, at)),
        range(tailBytes).flatMap((at) => addByte(tail, at, headBytes + at)),
        [...get(estimates), ...get(sums), ...range(SUMS - 1).flatMap((sum) => [...get(sums + 1 + sum), ...f32.add])],
        f32.store(),
        advance(estimates, 4),
        advance(list, 4),
        [...get(list), ...get(end), ...i32.lessThan],
      ),
    ],
  };
}

/** Sets `head` and `tail` to the addresses of the row that `list` points to. */
function addressesOf(
  { firstSegment, segmentBytes, headBytes, tailBytes, tails }: Layout,
  { list, head, tail }: { readonly list: number; readonly head: number; readonly tail: number },
): Code {
  const row = [...get(list), ...i32.load()];
  const segment = [
    ...[...row, ...i32.const(Math.log2(SEGMENT_ROWS)), ...i32.shiftRight],
    ...[...i32.const(segmentBytes), ...i32.multiply],
  ];
  const inSegment = (bytes: number) => [
    ...[...row, ...i32.const(SEGMENT_ROWS - 1), ...i32.and],
    ...[...i32.const(bytes), ...i32.multiply],
  ];
  const address = (start: number, bytes: number) => [
    ...[...segment, ...inSegment(bytes), ...i32.add],
    ...[...i32.const(firstSegment + start), ...i32.add],
  ];
  return [...address(0, headBytes), ...set(head), ...address(tails, tailBytes), ...set(tail)];
}

/** How many bits differ between `count` words at an address and those in locals from `words` on. */
function differences(at: number, words: number, count: number): Code {
  return range(count).flatMap((word) => [
    ...[...get(at), ...i64.load(8 * word), ...get(words + word), ...i64.xor, ...i64.popcount],
    ...(word === 0 ? [] : i64.add),
  ]);
}

function advance(address: number, bytes: number): Code {
  return [...get(address), ...i32.const(bytes), ...i32.add, ...set(address)];
}

function range(count: number): number[] {
  return Array.from({ length: count }, (_, index) => index);
}
