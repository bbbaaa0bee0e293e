import { createKernels, type SharedMemory } from './create-kernels.ts';
import { columnOf, type KernelMemory, type Kernels, type Layout, PAGE, SEGMENT_ROWS, TURNED_ROWS } from './kernels.ts';

/**
 * The rows of a matrix in the memory that the kernels (the inner loops of a search) work on, as one thread sees them.
 */
export interface Codes {
  readonly layout: Layout;
  readonly kernels: Kernels;
  readonly memory: KernelMemory;
  /**
   * Returns views of the whole memory as it is now. Views that were returned before the memory grew show the same
   * bytes, but lack the part that was added.
   */
  views(): Views;
  /**
   * Records that a search used the thread's working area up to the address `end`, for the count of used memory: pages
   * that were never used take no memory.
   */
  noteUse(end: number): void;
}

/**
 * Three views of one memory: as bytes, as unsigned 32-bit numbers and as 64-bit floats. The index of an element is its
 * address divided by 1, 4 or 8.
 */
interface Views {
  readonly bytes: Uint8Array;
  readonly words: Uint32Array;
  readonly doubles: Float64Array;
}

/** Fields of a row that are stored in 32 bits. */
type WordField = 'labels' | 'previous' | 'ordinals';
/** Fields of a row that are stored in 64 bits. */
type NumberField = 'vectorNos' | 'memories';

/**
 * Opens the memory of a layout for one thread, whose working area the layout determines.
 * @param noteUse called with the address of the end of the used part of the working area
 */
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

/** Returns the address of the segment (a block of 16,384 rows) that contains a row. */
export function segmentOf({ firstSegment, segmentBytes }: Layout, row: number): number {
  return firstSegment + Math.floor(row / SEGMENT_ROWS) * segmentBytes;
}

/** Returns the address of a row's code (the sign bits of its vector). */
export function codeAddress(layout: Layout, row: number): number {
  return segmentOf(layout, row) + (row % SEGMENT_ROWS) * layout.codeBytes;
}

/** Returns the index into `Views.words` of a row's 32-bit field. */
export function wordAt(layout: Layout, field: WordField, row: number): number {
  return (segmentOf(layout, row) + layout[field]) / 4 + (row % SEGMENT_ROWS);
}

/** Returns the index into `Views.doubles` of a row's 64-bit field. */
function numberAt(layout: Layout, field: NumberField, row: number): number {
  return (segmentOf(layout, row) + layout[field]) / 8 + (row % SEGMENT_ROWS);
}

/**
 * Returns a function that reads a 32-bit field of a row. It reads only rows for which the memory had room when this
 * function was called, and gives undefined for later ones.
 */
export function wordReader(codes: Codes, field: WordField): (row: number) => number {
  const { layout } = codes;
  const { words } = codes.views();
  return (row) => words[wordAt(layout, field, row)]!;
}

/** Returns a function that reads a 64-bit field of a row. It is bound to the same rows as that of `wordReader`. */
export function numberReader(codes: Codes, field: NumberField): (row: number) => number {
  const { layout } = codes;
  const { doubles } = codes.views();
  return (row) => doubles[numberAt(layout, field, row)]!;
}

/** Makes rows that another thread has added visible to this thread, since the memory may have grown for them. */
export function showRows(codes: Codes, rows: number): void {
  if (codes.memory.buffer.byteLength < bytesUpTo(codes.layout, rows)) codes.memory.grow(0);
}

/** Grows the memory until it has room for `rows` rows in total. Only one thread at a time may call it. */
export function reserveRows(codes: Codes, rows: number): void {
  showRows(codes, rows);
  const missing = bytesUpTo(codes.layout, rows) - codes.memory.buffer.byteLength;
  if (missing > 0) codes.memory.grow(missing / PAGE);
}

function bytesUpTo({ firstSegment, segmentBytes }: Layout, rows: number): number {
  return firstSegment + Math.ceil(rows / SEGMENT_ROWS) * segmentBytes;
}

/**
 * Prepares a new segment (a block of rows) that begins with `row`, before that row is added: fills its column of ones.
 */
export function beginSegment(codes: Codes, row: number): void {
  const ones = segmentOf(codes.layout, row) + codes.layout.ones;
  codes.views().bytes.fill(0xff, ones, ones + SEGMENT_ROWS / 8);
}

/**
 * Stores the bits of the rows from `turned` up to, but not including, `rows` by dimension (as columns). This is done
 * for groups of 16 (`TURNED_ROWS`) rows, so that the last group, if it was not full, is written again. Other threads
 * may read it meanwhile, since equal bytes are written.
 */
export function turnColumns({ layout, kernels }: Codes, turned: number, rows: number): void {
  for (let row = turned - (turned % TURNED_ROWS); row < rows; row += TURNED_ROWS) {
    const columns = columnOf(layout, 0) + segmentOf(layout, row) + (row % SEGMENT_ROWS) / 8;
    kernels.turn(codeAddress(layout, row), columns);
  }
}
