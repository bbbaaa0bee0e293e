import { assert } from '../../errors.ts';
import { createKernels, type KernelChoice } from './create-kernels.ts';
import {
  columnOf,
  MAX_DIMENSIONS,
  type KernelMemory,
  type Kernels,
  type Layout,
  layoutOf,
  PAGE,
  SEGMENT_ROWS,
  TURNED_ROWS,
} from './kernels.ts';

/** The codes of a matrix and the labels of its rows, in the memory that the kernels work on. */
export interface Codes {
  readonly layout: Layout;
  readonly memory: KernelMemory;
  readonly kernels: Kernels;
  /** Number of segments that the memory has room for. */
  segments: number;
  /**
   * Rows below this number also exist as columns. A small index needs no columns, and they take as much memory as the
   * codes.
   */
  turned: number;
  /** Address behind the last byte in front of the segments that was ever used: pages never used take no memory. */
  usedBefore: number;
}

/**
 * Creates memory for codes of vectors with this many dimensions.
 * @throws EngineError `internal` if `dimensions` is not a multiple of 8 up to `MAX_DIMENSIONS`
 */
export function createCodes(dimensions: number, choice: KernelChoice): Codes {
  assert(
    dimensions % 8 === 0 && dimensions >= 8 && dimensions <= MAX_DIMENSIONS,
    `sign bits of ${dimensions} dimensions, not a multiple of 8 up to ${MAX_DIMENSIONS}`,
  );
  const layout = layoutOf(dimensions);
  return { layout, ...createKernels(layout, choice), segments: 0, turned: 0, usedBefore: layout.candidates };
}

/** Returns the bytes in use: those of the first `rows` rows, of their columns, and of the part that questions used. */
export function bytesOfCodes({ layout, turned, usedBefore }: Codes, rows: number): number {
  const columnBytes = Math.ceil(turned / SEGMENT_ROWS) * (layout.segmentBytes - layout.columns);
  return usedBefore + rows * (layout.codeBytes + 4) + columnBytes;
}

/** Returns the address of a row's segment, the row's position in it, and the addresses of its code and its label. */
export function addressOf(
  { layout }: Codes,
  row: number,
): { readonly segment: number; readonly place: number; readonly code: number; readonly label: number } {
  const place = row % SEGMENT_ROWS;
  const segment = layout.firstSegment + Math.floor(row / SEGMENT_ROWS) * layout.segmentBytes;
  return { segment, place, code: segment + place * layout.codeBytes, label: segment + layout.labels + place * 4 };
}

/** Grows the memory until it has room for `rows` rows in all. Make views of the memory anew after it. */
export function reserveRows(codes: Codes, rows: number): void {
  const { layout, memory } = codes;
  const needed = Math.ceil(rows / SEGMENT_ROWS);
  if (needed <= codes.segments) return;
  memory.grow(((needed - codes.segments) * layout.segmentBytes) / PAGE);
  const bytes = new Uint8Array(memory.buffer);
  for (; codes.segments < needed; codes.segments += 1) {
    const ones = layout.firstSegment + codes.segments * layout.segmentBytes + layout.ones;
    bytes.fill(0xff, ones, ones + SEGMENT_ROWS / 8);
  }
}

/**
 * Makes the columns of the rows below `rows` that have none. Columns are made for `TURNED_ROWS` rows at a time, so
 * those of the last such group are made again if it was not full.
 */
export function turnColumns(codes: Codes, rows: number): void {
  const { layout, kernels } = codes;
  for (let row = codes.turned - (codes.turned % TURNED_ROWS); row < rows; row += TURNED_ROWS) {
    const { segment, place, code } = addressOf(codes, row);
    kernels.turn(code, columnOf(layout, 0) + segment + place / 8);
  }
  codes.turned = rows;
}

/** Returns a function that reads the label of a row. It is valid until the memory grows. */
export function labelReader({ layout, memory }: Codes): (row: number) => number {
  const words = new Uint32Array(memory.buffer);
  const { firstSegment, segmentBytes, labels } = layout;
  return (row) =>
    words[(firstSegment + Math.floor(row / SEGMENT_ROWS) * segmentBytes + labels) / 4 + (row % SEGMENT_ROWS)]!;
}
