import { createKernels, type SharedMemory } from './create-kernels.ts';
import { columnOf, type KernelMemory, type Kernels, type Layout, PAGE, SEGMENT_ROWS, TURNED_ROWS } from './kernels.ts';

/** The rows of a matrix in the memory that the kernels work on, as one thread sees it. */
export interface Codes {
  readonly layout: Layout;
  readonly kernels: Kernels;
  readonly memory: KernelMemory;
  /** Returns views of the whole memory. They are valid until it grows. */
  views(): Views;
  /** Notes that a question used the thread's working area up to the address `end`: pages never used take no memory. */
  noteUse(end: number): void;
}

/** The memory as bytes, as whole numbers of 32 bits and as floats of 64 bits, indexed by address / 1, 4 and 8. */
interface Views {
  readonly bytes: Uint8Array;
  readonly words: Uint32Array;
  readonly doubles: Float64Array;
}

/** Fields that a segment has for each row, 32 bits each. */
type WordField = 'labels' | 'previous' | 'ordinals';
/** Fields that a segment has for each row, 64 bits each. */
type NumberField = 'vectorNos' | 'memories';

/** Opens memory of a layout for the thread whose working area the layout names. */
export function openCodes(layout: Layout, shared: SharedMemory, noteUse: (end: number) => void): Codes {
  const { memory, kernels } = createKernels(layout, shared);
  let views: Views | undefined;
  return {
    layout,
    kernels,
    memory,
    noteUse,
    views() {
      const { buffer } = memory;
      const length = buffer.byteLength;
      if (views?.bytes.length !== length) {
        views = {
          bytes: new Uint8Array(buffer, 0, length),
          words: new Uint32Array(buffer, 0, length / 4),
          doubles: new Float64Array(buffer, 0, length / 8),
        };
      }
      return views;
    },
  };
}

/** Returns the address of the segment that a row is in. */
export function segmentOf({ firstSegment, segmentBytes }: Layout, row: number): number {
  return firstSegment + Math.floor(row / SEGMENT_ROWS) * segmentBytes;
}

/** Returns the address of a row's code. */
export function codeAddress(layout: Layout, row: number): number {
  return segmentOf(layout, row) + (row % SEGMENT_ROWS) * layout.codeBytes;
}

/** Returns where a row has a field, as an index into `words`. */
export function wordAt(layout: Layout, field: WordField, row: number): number {
  return (segmentOf(layout, row) + layout[field]) / 4 + (row % SEGMENT_ROWS);
}

/** Returns where a row has a field, as an index into `doubles`. */
function numberAt(layout: Layout, field: NumberField, row: number): number {
  return (segmentOf(layout, row) + layout[field]) / 8 + (row % SEGMENT_ROWS);
}

/** Returns a function that reads a field of a row. It is valid until the memory grows. */
export function wordReader(codes: Codes, field: WordField): (row: number) => number {
  const { layout } = codes;
  const { words } = codes.views();
  return (row) => words[wordAt(layout, field, row)]!;
}

/** Returns a function that reads a field of a row. It is valid until the memory grows. */
export function numberReader(codes: Codes, field: NumberField): (row: number) => number {
  const { layout } = codes;
  const { doubles } = codes.views();
  return (row) => doubles[numberAt(layout, field, row)]!;
}

/** Makes rows visible that another thread has added: the memory may have grown there. */
export function showRows(codes: Codes, rows: number): void {
  if (codes.memory.buffer.byteLength < bytesUpTo(codes.layout, rows)) codes.memory.grow(0);
}

/** Grows the memory until it has room for `rows` rows in all. Only one thread at a time may do that. */
export function reserveRows(codes: Codes, rows: number): void {
  showRows(codes, rows);
  const missing = bytesUpTo(codes.layout, rows) - codes.memory.buffer.byteLength;
  if (missing > 0) codes.memory.grow(missing / PAGE);
}

function bytesUpTo({ firstSegment, segmentBytes }: Layout, rows: number): number {
  return firstSegment + Math.ceil(rows / SEGMENT_ROWS) * segmentBytes;
}

/** Prepares the segment whose first row is to be added. */
export function beginSegment(codes: Codes, row: number): void {
  const ones = segmentOf(codes.layout, row) + codes.layout.ones;
  codes.views().bytes.fill(0xff, ones, ones + SEGMENT_ROWS / 8);
}

/**
 * Makes the columns of the rows from `turned` up to, but not including, `rows`. Columns are made for `TURNED_ROWS` rows
 * at a time, so those of the last such group are made again if it was not full; other threads may read them meanwhile,
 * since what is written there is what was there.
 */
export function turnColumns({ layout, kernels }: Codes, turned: number, rows: number): void {
  for (let row = turned - (turned % TURNED_ROWS); row < rows; row += TURNED_ROWS) {
    const columns = columnOf(layout, 0) + segmentOf(layout, row) + (row % SEGMENT_ROWS) / 8;
    kernels.turn(codeAddress(layout, row), columns);
  }
}
