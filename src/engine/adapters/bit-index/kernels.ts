import { assemble, control, i32, i64, local, type Code, type WasmFunction } from './assembler.ts';

/**
 * The inner loops over sign bits, as WebAssembly made at run time: V8 turns `i64.popcnt` into one instruction, which plain JavaScript has
 * no way to say, and counts the differing bits of two 768-bit codes some ten times faster. Loops over the words of a code are unrolled, so
 * each width of codes has a module of its own.
 */

/** Codes lie in segments of so many, each at a fixed distance from the last: memory grows by whole segments and nothing is ever moved. */
export const SEGMENT_ROWS = 8_192;
/** Questions that are asked of a segment while it is in the processor's cache. */
export const QUESTIONS_AT_ONCE = 16;
/** Rows that can be candidates of all these questions together. */
export const CANDIDATES_MOST = 400_000;
/** Bytes of a candidate: its row, and what was measured of it, 32 bits each. */
export const CANDIDATE_BYTES = 8;
/** Bits of each component of a question in the last pass, its sign included. */
export const COMPONENT_BITS = 8;
export const DIMENSIONS_MOST = 8_192;

const PAGE = 65_536;

/** Where things are in a memory, in bytes. A code is `headBytes` and, apart from them, `tailBytes`. */
export interface Layout {
  readonly headBytes: number;
  readonly tailBytes: number;
  /** Codes to compare with. */
  readonly queries: number;
  /** The components of a question as whole numbers, bit by bit: one code for their lowest bits, one for the next, the signs last. */
  readonly planes: number;
  /** For each question how many candidates there are at each distance, 32 bits each. */
  readonly counts: number;
  readonly countsBytes: number;
  readonly candidates: number;
  readonly firstSegment: number;
  readonly segmentBytes: number;
  /** Within a segment; what else is known of its rows, 32 bits each. */
  readonly tails: number;
  readonly labels: number;
}

export function layoutOf(dimensions: number): Layout {
  const words = Math.ceil(dimensions / 64);
  const headBytes = 8 * Math.ceil(words / 3);
  const tailBytes = 8 * words - headBytes;
  const planes = QUESTIONS_AT_ONCE * 8 * words;
  const counts = planes + COMPONENT_BITS * 8 * words;
  const countsBytes = 4 * (64 * words + 1);
  const candidates = counts + QUESTIONS_AT_ONCE * countsBytes;
  const tails = SEGMENT_ROWS * headBytes;
  const labels = tails + SEGMENT_ROWS * tailBytes;
  return {
    ...{ headBytes, tailBytes, queries: 0, planes, counts, countsBytes, candidates, tails, labels },
    firstSegment: pages(candidates + CANDIDATES_MOST * CANDIDATE_BYTES),
    segmentBytes: pages(labels + SEGMENT_ROWS * 4),
  };
}

function pages(bytes: number): number {
  return Math.ceil(bytes / PAGE) * PAGE;
}

/** All take addresses; ends are exclusive, and nothing may be empty. */
export interface Kernels {
  /**
   * Writes to `candidates`, and counts, the rows from `row` on whose heads differ from the query's in fewer bits than `bound`, and whose
   * labels are `label` where `mask` has a bit. @returns the end of the candidates
   */
  scan(
    heads: number,
    end: number,
    labels: number,
    row: number,
    query: number,
    bound: number,
    mask: number,
    label: number,
    counts: number,
    candidates: number,
  ): number;
  /** Keeps what was measured below `limit`, and the first `ties` at it. @returns the end of what is left */
  keep(candidates: number, end: number, limit: number, ties: number): number;
  /** Measures, and counts, the Hamming distances of whole codes. */
  measure(candidates: number, end: number, query: number, counts: number): void;
  /** The same for candidates whose heads were measured: one line of the cache a candidate is fetched instead of two. */
  measureTails(candidates: number, end: number, query: number, counts: number): void;
  /** Measures the sum of the question's components where the candidate's code has a bit. */
  estimate(candidates: number, end: number, planes: number): void;
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
    const functions = [scan(layout), keep, measure(layout), measureTails(layout), estimate(layout)];
    modules.set(width, (made = new WebAssembly.Module(assemble(functions))));
  }
  return made;
}

const { get, set, tee } = local;

/**
 * A nanosecond for 256 bits, which is what counting them takes. Few rows are within the bound, so a branch is guessed right, and only of
 * those is it asked whether they may be found at all.
 */
function scan({ headBytes }: Layout): WasmFunction {
  const [heads, end, labels, row, query, bound, mask, label, counts, candidates] = range(10) as Parameters10;
  const [distance, words] = [10, 11];
  const count = headBytes / 8;
  return {
    name: 'scan',
    parameters: 10,
    locals: [
      [1, 'i32'],
      [count, 'i64'],
    ],
    returns: 'i32',
    body: [
      ...range(count).map((word) => [...get(query), ...i64.load(8 * word), ...set(words + word)]),
      control.repeatWhile(
        [...differences(heads, words, count), ...i32.fromI64, ...tee(distance), ...get(bound), ...i32.lessThan],
        control.when(
          [...get(labels), ...i32.load(), ...get(mask), ...i32.and, ...get(label), ...i32.equal],
          control.when(
            [...get(candidates), ...get(row), ...i32.store()],
            [...get(candidates), ...get(distance), ...i32.store(4)],
            countOne(counts, distance),
            advance(candidates, CANDIDATE_BYTES),
          ),
        ),
        advance(row, 1),
        advance(labels, 4),
        advance(heads, headBytes),
        [...get(heads), ...get(end), ...i32.lessThan],
      ),
      get(candidates),
    ],
  };
}

type Parameters10 = [number, number, number, number, number, number, number, number, number, number];

/** Writes every candidate and then moves on or not: what is near enough cannot be guessed, and each wrong guess costs ten of them. */
const keep: WasmFunction = (() => {
  const [candidates, end, limit, ties, kept, measured, isTie] = [0, 1, 2, 3, 4, 5, 6];
  return {
    name: 'keep',
    parameters: 4,
    locals: [[3, 'i32']],
    returns: 'i32',
    body: [
      [...get(candidates), ...set(kept)],
      control.repeatWhile(
        [...get(kept), ...get(candidates), ...i64.load(), ...i64.store()],
        [...get(candidates), ...i32.load(4), ...tee(measured), ...get(limit), ...i32.equal],
        [...i32.const(0), ...get(ties), ...i32.lessThan, ...i32.and, ...tee(isTie)],
        [...get(measured), ...get(limit), ...i32.lessThan, ...i32.or],
        [...i32.const(Math.log2(CANDIDATE_BYTES)), ...i32.shiftLeft, ...get(kept), ...i32.add, ...set(kept)],
        [...get(ties), ...get(isTie), ...i32.subtract, ...set(ties)],
        advance(candidates, CANDIDATE_BYTES),
        [...get(candidates), ...get(end), ...i32.lessThan],
      ),
      get(kept),
    ],
  };
})();

function measure(layout: Layout): WasmFunction {
  const { headBytes, tailBytes } = layout;
  const [candidates, end, query, counts, head, tail, distance, words] = [0, 1, 2, 3, 4, 5, 6, 7];
  const [inHead, inTail] = [headBytes / 8, tailBytes / 8];
  const ofTail = inTail === 0 ? [] : [...differences(tail, words + inHead, inTail), ...i64.add];
  return {
    name: 'measure',
    parameters: 4,
    locals: [
      [3, 'i32'],
      [inHead + inTail, 'i64'],
    ],
    body: [
      ...range(inHead + inTail).map((word) => [...get(query), ...i64.load(8 * word), ...set(words + word)]),
      control.repeatWhile(
        addressesOf(layout, { row: candidates, head, tail }),
        [...get(candidates), ...differences(head, words, inHead), ...ofTail, ...i32.fromI64, ...tee(distance)],
        i32.store(4),
        countOne(counts, distance),
        advance(candidates, CANDIDATE_BYTES),
        [...get(candidates), ...get(end), ...i32.lessThan],
      ),
    ],
  };
}

function measureTails(layout: Layout): WasmFunction {
  const { headBytes, tailBytes } = layout;
  const [candidates, end, query, counts, head, tail, distance, words] = [0, 1, 2, 3, 4, 5, 6, 7];
  const count = tailBytes / 8;
  const ofTail = count === 0 ? [] : [...differences(tail, words, count), ...i32.fromI64, ...i32.add];
  return {
    name: 'measureTails',
    parameters: 4,
    locals: [
      [3, 'i32'],
      [count, 'i64'],
    ],
    body: [
      ...range(count).map((word) => [...get(query), ...i64.load(headBytes + 8 * word), ...set(words + word)]),
      control.repeatWhile(
        addressesOf(layout, { row: candidates, head, tail }),
        [...get(candidates), ...get(candidates), ...i32.load(4), ...ofTail, ...tee(distance), ...i32.store(4)],
        countOne(counts, distance),
        advance(candidates, CANDIDATE_BYTES),
        [...get(candidates), ...get(end), ...i32.lessThan],
      ),
    ],
  };
}

/** Twice the sum and the next lower bit, from the signs down: a bit of a plane counts double what one of the plane below does. */
function estimate(layout: Layout): WasmFunction {
  const { headBytes, tailBytes } = layout;
  const [candidates, end, planes, head, tail, sum] = [0, 1, 2, 3, 4, 5];
  const [inHead, inTail] = [headBytes / 8, tailBytes / 8];
  const common = (plane: number) => {
    const start = plane * (headBytes + tailBytes);
    const word = (at: number, offset: number, place: number) => [
      ...[...get(at), ...i64.load(offset), ...get(planes), ...i64.load(start + 8 * place)],
      ...[...i64.and, ...i64.popcount, ...(place === 0 ? [] : i64.add)],
    ];
    return [
      ...range(inHead).flatMap((place) => word(head, 8 * place, place)),
      ...range(inTail).flatMap((place) => word(tail, 8 * place, inHead + place)),
    ];
  };
  const signs = COMPONENT_BITS - 1;
  return {
    name: 'estimate',
    parameters: 3,
    locals: [
      [2, 'i32'],
      [1, 'i64'],
    ],
    body: [
      control.repeatWhile(
        addressesOf(layout, { row: candidates, head, tail }),
        [...i64.const0, ...common(signs), ...i64.subtract, ...set(sum)],
        range(signs).flatMap((lower) => [
          ...[...get(sum), ...get(sum), ...i64.add],
          ...[...common(signs - 1 - lower), ...i64.add, ...set(sum)],
        ]),
        [...get(candidates), ...get(sum), ...i32.fromI64, ...i32.store(4)],
        advance(candidates, CANDIDATE_BYTES),
        [...get(candidates), ...get(end), ...i32.lessThan],
      ),
    ],
  };
}

/** Sets `head` and `tail` to the addresses of the row whose number is at the address in `row`. */
function addressesOf(
  { firstSegment, segmentBytes, headBytes, tailBytes, tails }: Layout,
  { row, head, tail }: { readonly row: number; readonly head: number; readonly tail: number },
): Code {
  const number = [...get(row), ...i32.load()];
  const segment = [
    ...[...number, ...i32.const(Math.log2(SEGMENT_ROWS)), ...i32.shiftRight],
    ...[...i32.const(segmentBytes), ...i32.multiply],
  ];
  const inSegment = (bytes: number) => [
    ...[...number, ...i32.const(SEGMENT_ROWS - 1), ...i32.and],
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

/** Counts one more at a distance. */
function countOne(counts: number, distance: number): Code {
  const at = [...get(counts), ...get(distance), ...i32.const(2), ...i32.shiftLeft, ...i32.add];
  return [...at, ...at, ...i32.load(), ...i32.const(1), ...i32.add, ...i32.store()];
}

function advance(address: number, bytes: number): Code {
  return [...get(address), ...i32.const(bytes), ...i32.add, ...set(address)];
}

function range(count: number): number[] {
  return Array.from({ length: count }, (_, index) => index);
}
