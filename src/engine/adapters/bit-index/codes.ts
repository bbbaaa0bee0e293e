import { assert } from '../../errors.ts';
import { createKernels, type KernelChoice } from './create-kernels.ts';
import {
  columnOf,
  DIMENSIONS_MOST,
  type KernelMemory,
  type Kernels,
  type Layout,
  layoutOf,
  PAGE,
  SEGMENT_ROWS,
  TURNED_ROWS,
} from './kernels.ts';

/** The codes of a matrix with their labels, in the memory that the kernels work on. */
export interface Codes {
  readonly layout: Layout;
  readonly memory: KernelMemory;
  readonly kernels: Kernels;
  segments: number;
  /** Rows below it are there as columns, too. A small index needs none, and they take as much as the codes. */
  turned: number;
  /** How far the room in front of the segments was ever used: what was not takes no memory. */
  usedBefore: number;
}

/**
 * Makes memory for codes of this many dimensions.
 * @throws EngineError `internal` for dimensions that make no whole bytes, or too many
 */
export function createCodes(dimensions: number, choice: KernelChoice): Codes {
  assert(
    dimensions % 8 === 0 && dimensions >= 8 && dimensions <= DIMENSIONS_MOST,
    `sign bits of ${dimensions} dimensions, not a multiple of 8 up to ${DIMENSIONS_MOST}`,
  );
  const layout = layoutOf(dimensions);
  return { layout, ...createKernels(layout, choice), segments: 0, turned: 0, usedBefore: layout.candidates };
}

/** The bytes that the first `rows` rows take, and what questions used. */
export function bytesOfCodes({ layout, turned, usedBefore }: Codes, rows: number): number {
  const columnBytes = Math.ceil(turned / SEGMENT_ROWS) * (layout.segmentBytes - layout.columns);
  return usedBefore + rows * (layout.codeBytes + 4) + columnBytes;
}

/** Where a row lies: its segment, its place there, and the addresses of its code and its label. */
export function addressOf(
  { layout }: Codes,
  row: number,
): { readonly segment: number; readonly place: number; readonly code: number; readonly label: number } {
  const place = row % SEGMENT_ROWS;
  const segment = layout.firstSegment + Math.floor(row / SEGMENT_ROWS) * layout.segmentBytes;
  return { segment, place, code: segment + place * layout.codeBytes, label: segment + layout.labels + place * 4 };
}

/** Makes room for this many rows. */
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

/** Makes the columns of rows that have none; of the last rows they were made before, too, when there were fewer. */
export function turnColumns(codes: Codes, rows: number): void {
  const { layout, kernels } = codes;
  for (let row = codes.turned - (codes.turned % TURNED_ROWS); row < rows; row += TURNED_ROWS) {
    const { segment, place, code } = addressOf(codes, row);
    kernels.turn(code, columnOf(layout, 0) + segment + place / 8);
  }
  codes.turned = rows;
}

/** Reads the labels of rows from the memory as it is now. */
export function labelReader({ layout, memory }: Codes): (row: number) => number {
  const words = new Uint32Array(memory.buffer);
  const { firstSegment, segmentBytes, labels } = layout;
  return (row) =>
    words[(firstSegment + Math.floor(row / SEGMENT_ROWS) * segmentBytes + labels) / 4 + (row % SEGMENT_ROWS)]!;
}
