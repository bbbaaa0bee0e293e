/**
 * The inner loops of a search over sign bits (the kernels) as WebAssembly, assembled at run time. V8 compiles
 * `i64.popcnt` to one instruction and `v128` to the processor's vector registers; plain JavaScript has neither. Loops
 * over the words of a code are unrolled, so each length of codes has a module of its own.
 */

import { assemble, base, control, i32, i64, local, v128, type Code, type WasmFunction } from './assembler.ts';
import {
  BATCH_COLUMNS,
  CANDIDATE_BYTES,
  CARRY_PLANE,
  COLUMN_BYTES,
  COMPONENT_BITS,
  type Kernels,
  LANE_BYTES,
  type Layout,
  layoutOf,
  MAX_PAGES,
  PAGE,
  PLANES,
  SEGMENT_ROWS,
  START_BYTES,
  STEP_ROWS,
  TURNED_ROWS,
} from './kernels.ts';

/**
 * Number of candidates whose codes are read together in advance, so that the processor fetches them from memory in
 * parallel.
 */
const TOUCHED = 16;
/** Number of rows that one vector instruction processes. */
const LANE_ROWS = 8 * LANE_BYTES;

/** The answer of `hasWasmKernels`; undefined before it was asked. */
let isAble: boolean | undefined;

/**
 * Tells whether this machine runs the kernels: whether it has WebAssembly with 128-bit SIMD. The answer is found out
 * once, since it takes some milliseconds, and every index that is created asks for it.
 */
export function hasWasmKernels(): boolean {
  isAble ??= typeof WebAssembly !== 'undefined' && WebAssembly.validate(bytesOf(layoutOf(64)));
  return isAble;
}

/** Creates memory with working areas but no segment yet. It may be called only if `hasWasmKernels()` is true. */
export function createWasmMemory({ firstSegment }: Layout): WebAssembly.Memory {
  return new WebAssembly.Memory({ initial: firstSegment / PAGE, maximum: MAX_PAGES, shared: true });
}

/** Creates the kernels for codes of one layout in a memory. */
export function createWasmKernels(layout: Layout, memory: WebAssembly.Memory): Kernels {
  const sums = new WebAssembly.Global({ value: 'i32' }, layout.sums);
  const { exports } = new WebAssembly.Instance(moduleOf(layout), { env: { memory, base: sums } });
  return exports as unknown as Kernels;
}

/** Compiled modules, by the size of a code and the address of the first segment. */
const modules = new Map<string, WebAssembly.Module>();

/** Returns the module for the layout. Memories with equally long codes and equally many working areas share it. */
function moduleOf(layout: Layout): WebAssembly.Module {
  const key = `${layout.codeBytes} ${layout.firstSegment}`;
  let compiled = modules.get(key);
  if (compiled === undefined) modules.set(key, (compiled = new WebAssembly.Module(bytesOf(layout))));
  return compiled;
}

function bytesOf(layout: Layout): Uint8Array<ArrayBuffer> {
  return assemble([
    ...[turn(layout), addColumns('addFirst'), addColumns('addClear')],
    ...[addColumns('addSet'), collect, keep, measure(layout), estimate(layout)],
  ]);
}

const { get, set, tee } = local;

/**
 * Assembles the kernel `Kernels.turn`, which transposes one byte of each of 16 codes into 16 bits of each of eight
 * columns.
 */
function turn({ codeBytes }: Layout): WasmFunction {
  const [codes, columns, end, bytes] = [0, 1, 2, 3];
  const gathered = range(TURNED_ROWS).flatMap((row) => [
    ...[...get(codes), ...i32.const(row * codeBytes), ...i32.add, ...get(bytes), ...v128.loadByte(row), ...set(bytes)],
  ]);
  const bits = [7, 6, 5, 4, 3, 2, 1, 0].flatMap((bit) => [
    ...[...get(columns), ...get(bytes), ...v128.highestOfBytes, ...i32.store16(bit * COLUMN_BYTES)],
    ...(bit === 0 ? [] : [...get(bytes), ...i32.const(1), ...v128.shiftBytesLeft, ...set(bytes)]),
  ]);
  return {
    name: 'turn',
    parameters: 2,
    locals: [
      [1, 'i32'],
      [1, 'v128'],
    ],
    body: [
      [...get(codes), ...i32.const(codeBytes), ...i32.add, ...set(end)],
      control.repeatWhile(...[gathered, bits, advance(codes, 1), advance(columns, 8 * COLUMN_BYTES)], [
        ...get(codes),
        ...get(end),
        ...i32.lessThan,
      ]),
    ],
  };
}

/**
 * Assembles the kernels that add a batch: sixteen columns are added to the sums of 128 rows by fifteen adders of five
 * instructions each. An adder of complements gives the complement; so to count clear bits, only the lower planes are
 * inverted before and after, not every column. A batch reads sixteen streams of memory, which the processor prefetches;
 * with all columns in one loop it does not. The sums are at `base`, which differs by thread: `at` and `end` are raised
 * by `base` and the columns' addresses lowered, so that the loop needs no further addition.
 */
function addColumns(name: 'addFirst' | 'addClear' | 'addSet'): WasmFunction {
  const [choice, segment, at, end, columns] = [0, 1, 2, 3, 4];
  const planes = columns + BATCH_COLUMNS;
  // Pairs, fours and eights have two locals each: the first waits there for the second.
  const [pairs, fours, eights] = [planes + PLANES, planes + PLANES + 2, planes + PLANES + 4];
  const [carry, sum] = [planes + PLANES + 6, planes + PLANES + 7];
  const adder = (into: number, one: Code, other: Code, out: number) => [
    ...[...one, ...set(carry), ...other, ...set(out)],
    ...[...get(carry), ...get(out), ...v128.xor, ...set(sum)],
    ...[...get(carry), ...get(out), ...v128.and, ...get(sum), ...get(into), ...v128.and, ...v128.or, ...set(out)],
    ...[...get(sum), ...get(into), ...v128.xor, ...set(into)],
  ];
  const isTurned = (plane: number) => name !== 'addSet' && plane < CARRY_PLANE;
  const step = (offset: number) => {
    const column = (place: number) => [...get(columns + place), ...get(at), ...i32.add, ...v128.load(offset)];
    const load = (plane: number) => [
      ...(name === 'addFirst'
        ? [...get(choice), ...v128.load(plane * LANE_BYTES)]
        : [...get(at), ...v128.load(plane * COLUMN_BYTES + offset)]),
      ...(isTurned(plane) ? v128.not : []),
      ...set(planes + plane),
    ];
    const store = (plane: number) => [
      ...[...get(at), ...get(planes + plane), ...(isTurned(plane) ? v128.not : [])],
      ...v128.store(plane * COLUMN_BYTES + offset),
    ];
    const half = (place: number, out: number) => [
      ...adder(planes, column(place), column(place + 1), pairs),
      ...adder(planes, column(place + 2), column(place + 3), pairs + 1),
      ...adder(planes + 1, get(pairs), get(pairs + 1), fours),
      ...adder(planes, column(place + 4), column(place + 5), pairs),
      ...adder(planes, column(place + 6), column(place + 7), pairs + 1),
      ...adder(planes + 1, get(pairs), get(pairs + 1), fours + 1),
      ...adder(planes + 2, get(fours), get(fours + 1), out),
    ];
    const ripple = range(PLANES - CARRY_PLANE).flatMap((level) => {
      const plane = planes + CARRY_PLANE + level;
      const next = [...get(plane), ...get(eights), ...v128.and, ...set(carry)];
      const flip = [...get(plane), ...get(eights), ...v128.xor, ...set(plane)];
      return level === PLANES - CARRY_PLANE - 1 ? flip : [...next, ...flip, ...get(carry), ...set(eights)];
    });
    return [
      ...range(PLANES).flatMap(load),
      ...[...half(0, eights), ...half(8, eights + 1), ...adder(planes + 3, get(eights), get(eights + 1), eights)],
      ...(name === 'addSet' ? [] : [...get(eights), ...v128.not, ...set(eights)]),
      ...[...ripple, ...range(PLANES).flatMap(store)],
    ];
  };
  return {
    name,
    parameters: 4,
    locals: [
      [BATCH_COLUMNS, 'i32'],
      [PLANES + 8, 'v128'],
    ],
    body: [
      range(BATCH_COLUMNS).flatMap((place) => [
        ...[...get(choice), ...i32.load(START_BYTES + 4 * place), ...get(segment), ...i32.add],
        ...[...base, ...i32.subtract, ...set(columns + place)],
      ]),
      [...get(at), ...base, ...i32.add, ...set(at), ...get(end), ...base, ...i32.add, ...set(end)],
      control.repeatWhile(
        ...range(STEP_ROWS / LANE_ROWS).map((lane) => step(lane * LANE_BYTES)),
        advance(at, STEP_ROWS / 8),
        [...get(at), ...get(end), ...i32.lessThan],
      ),
    ],
  };
}

/**
 * The kernel `Kernels.collect`. It reads labels and distances only of the few rows whose sums stayed below the bound.
 */
const collect: WasmFunction = (() => {
  const [at, row, endRow, labels, mask, label, start, counts, candidates] = range(9) as Parameters9;
  const [lane, found, distance, rest] = [9, 10, 11, 12];
  const [below] = [13];
  const highest = (PLANES - 1) * COLUMN_BYTES;
  const distanceOf = (half: number) => [
    ...range(PLANES - 1).flatMap((plane) => [
      ...[...get(at), ...i64.load(plane * COLUMN_BYTES + 8 * half), ...get(rest), ...i64.trailingZeros],
      ...[...i64.shiftRight, ...i32.fromI64, ...i32.const(1), ...i32.and, ...i32.const(plane), ...i32.shiftLeft],
      ...(plane === 0 ? [] : i32.add),
    ]),
    ...[...get(start), ...i32.subtract, ...set(distance)],
  ];
  const rowsOf = (half: 0 | 1) => [
    ...[...get(below), ...v128.half(half), ...tee(rest), ...i64.const(0), ...i64.notEqual],
    ...control.when(
      control.repeatWhile(
        [...get(rest), ...i64.trailingZeros, ...i32.fromI64, ...get(lane), ...i32.add],
        [...i32.const(64 * half), ...i32.add, ...tee(found)],
        [...get(row), ...i32.add, ...get(endRow), ...i32.lessThan],
        control.when(
          [...get(labels), ...get(found), ...i32.const(2), ...i32.shiftLeft, ...i32.add, ...i32.load()],
          [...get(mask), ...i32.and, ...get(label), ...i32.equal],
          control.when(
            distanceOf(half),
            [...get(candidates), ...get(row), ...get(found), ...i32.add, ...i32.store()],
            [...get(candidates), ...get(distance), ...i32.store(4)],
            countOne(counts, distance),
            advance(candidates, CANDIDATE_BYTES),
          ),
        ),
        [...get(rest), ...get(rest), ...i64.const(-1), ...i64.add, ...i64.and, ...tee(rest)],
        [...i64.const(0), ...i64.notEqual],
      ),
    ),
  ];
  return {
    name: 'collect',
    parameters: 9,
    locals: [
      [3, 'i32'],
      [1, 'i64'],
      [1, 'v128'],
    ],
    returns: 'i32',
    body: [
      [...get(at), ...i32.const(3), ...i32.shiftLeft, ...set(lane)],
      [...get(at), ...base, ...i32.add, ...set(at)],
      control.repeatWhile(
        [...get(at), ...v128.load(highest), ...v128.not, ...local.tee(below), ...v128.any],
        control.when(rowsOf(0), rowsOf(1)),
        advance(at, LANE_BYTES),
        [...get(lane), ...i32.const(LANE_ROWS), ...i32.add, ...tee(lane)],
        [...get(row), ...i32.add, ...get(endRow), ...i32.lessThan],
      ),
      get(candidates),
    ],
  };
})();

type Parameters9 = [number, number, number, number, number, number, number, number, number];

/**
 * The kernel `Kernels.keep`. It has no branch: it writes every candidate, and advances the target only if the candidate
 * is kept. A branch could not be predicted, and each wrong prediction costs as much as ten candidates.
 */
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
  const [candidates, end, query, counts, code, distance, words] = [0, 1, 2, 3, 4, 5, 6];
  const count = layout.codeBytes / 8;
  return {
    name: 'measure',
    parameters: 4,
    locals: [
      [2, 'i32'],
      [count, 'i64'],
    ],
    body: [
      ...range(count).map((word) => [...get(query), ...i64.load(8 * word), ...set(words + word)]),
      control.repeatWhile(
        [...addressOf(layout, candidates), ...set(code)],
        [...get(candidates), ...differences(code, words, count), ...i32.fromI64, ...tee(distance), ...i32.store(4)],
        countOne(counts, distance),
        advance(candidates, CANDIDATE_BYTES),
        [...get(candidates), ...get(end), ...i32.lessThan],
      ),
    ],
  };
}

/**
 * Assembles the kernel `Kernels.estimate`. It sums components bit by bit from the signs down: at each bit it doubles
 * the sum and adds the number of components that have this bit and whose bit in the code is set. The codes of
 * candidates are far apart in memory. Therefore the codes of 16 (`TOUCHED`) candidates are read before they are
 * compared, so that the processor fetches them together.
 */
function estimate(layout: Layout): WasmFunction {
  const { codeBytes } = layout;
  const [candidates, end, components, code, touched, stop, sum, ignored] = [0, 1, 2, 3, 4, 5, 6, 7];
  const common = (bit: number) =>
    range(codeBytes / 8).flatMap((word) => [
      ...[...get(code), ...i64.load(8 * word), ...get(components), ...i64.load(bit * codeBytes + 8 * word)],
      ...[...i64.and, ...i64.popcount, ...(word === 0 ? [] : i64.add)],
    ]);
  const signs = COMPONENT_BITS - 1;
  const smaller = (one: number, other: Code) => [
    ...[...get(one), ...other, ...get(one), ...other, ...i32.lessThan, ...i32.select],
  ];
  return {
    name: 'estimate',
    parameters: 3,
    locals: [
      [3, 'i32'],
      [2, 'i64'],
    ],
    body: [
      [...get(candidates), ...set(touched)],
      control.repeatWhile(
        [...smaller(end, [...get(candidates), ...i32.const(TOUCHED * CANDIDATE_BYTES), ...i32.add]), ...set(stop)],
        control.repeatWhile(
          [...addressOf(layout, touched), ...tee(code), ...i64.load(), ...get(code), ...i64.load(codeBytes - 8)],
          [...i64.xor, ...get(ignored), ...i64.xor, ...set(ignored)],
          advance(touched, CANDIDATE_BYTES),
          [...get(touched), ...get(stop), ...i32.lessThan],
        ),
        control.repeatWhile(
          [...addressOf(layout, candidates), ...set(code)],
          [...i64.const(0), ...common(signs), ...i64.subtract, ...set(sum)],
          range(signs).flatMap((lower) => [
            ...[...get(sum), ...get(sum), ...i64.add],
            ...[...common(signs - 1 - lower), ...i64.add, ...set(sum)],
          ]),
          [...get(candidates), ...get(sum), ...i32.fromI64, ...i32.store(4)],
          advance(candidates, CANDIDATE_BYTES),
          [...get(candidates), ...get(stop), ...i32.lessThan],
        ),
        [...get(candidates), ...get(end), ...i32.lessThan],
      ),
      [...get(ignored), ...i32.fromI64],
    ],
    returns: 'i32',
  };
}

/**
 * Returns instructions that push the address of a row's code. The row's number is in memory at the address in local
 * `row`.
 */
function addressOf({ firstSegment, segmentBytes, codeBytes }: Layout, row: number): Code {
  const number = [...get(row), ...i32.load()];
  return [
    ...[...number, ...i32.const(Math.log2(SEGMENT_ROWS)), ...i32.shiftRight],
    ...[...i32.const(segmentBytes), ...i32.multiply],
    ...[...number, ...i32.const(SEGMENT_ROWS - 1), ...i32.and, ...i32.const(codeBytes), ...i32.multiply],
    ...[...i32.add, ...i32.const(firstSegment), ...i32.add],
  ];
}

/**
 * Returns instructions that push a Hamming distance: the number of differing bits between `count` 64-bit words in
 * memory, at the address in local `at`, and the locals from `words` on.
 */
function differences(at: number, words: number, count: number): Code {
  return range(count).flatMap((word) => [
    ...[...get(at), ...i64.load(8 * word), ...get(words + word), ...i64.xor, ...i64.popcount],
    ...(word === 0 ? [] : i64.add),
  ]);
}

/**
 * Returns instructions that add 1 to the count of candidates at the distance in local `distance`. The counts are in
 * memory at the address in local `counts`.
 */
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
