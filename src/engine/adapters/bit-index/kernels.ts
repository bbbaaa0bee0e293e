/**
 * Where the codes of vectors lie in one block of memory, and the inner loops over them. Two sets of loops meet the same description,
 * WebAssembly (wasm-kernels.ts) and plain JavaScript (js-kernels.ts), and give the same answers to the last bit.
 *
 * Every code is there twice. Row by row, to compare whole codes; and bit by bit, as columns: a column holds one dimension of all rows
 * of a segment, so that one instruction works on that dimension of many rows (Li and Patel, "BitWeaving", SIGMOD 2013). Columns are
 * added up by counters that are bit-sliced, too: plane n holds bit n of as many sums (Harley and Seal's carry-save adders, in Warren,
 * "Hacker's Delight").
 */

/** Rows of a segment. Each segment lies at a fixed distance from the last: memory grows by whole segments and nothing in it is moved. */
export const SEGMENT_ROWS = 16_384;
/** Questions that are asked of a segment while it is in the processor's cache. */
export const QUESTIONS_AT_ONCE = 16;
/** Rows that can be candidates of all these questions together. */
export const CANDIDATES_MOST = 400_000;
/** Bytes of a candidate: its row, and what was measured of it, 32 bits each. */
export const CANDIDATE_BYTES = 8;
/** Bits of each component of a question in the last pass, its sign included. */
export const COMPONENT_BITS = 6;
/** The widest codes that the layout takes. */
export const DIMENSIONS_MOST = 8_192;

/** Columns that are added at once. */
export const BATCH_COLUMNS = 16;
/** How often columns are added at most: as often as the sums have room for. */
export const BATCHES_MOST = 6;
/** Rows that the loop over a batch goes on by: a line of the processor's cache a column. */
export const STEP_ROWS = 512;
/** Rows that are turned into columns at once. */
export const TURNED_ROWS = 16;

/** Bits of a sum. A sum starts at 2^(PLANES - 1) - bound, so that the highest is set from the bound on. */
export const PLANES = 8;
/** The lowest plane that only carries of a batch reach. */
export const CARRY_PLANE = Math.log2(BATCH_COLUMNS);
/** A sum that reached its bound has this bit. */
export const OVERFLOW = 2 ** (PLANES - 1);

/** Bytes by which memory grows, as WebAssembly has it. */
export const PAGE = 65_536;
/** Bytes that each plane of what sums start at takes: a vector register. */
export const LANE_BYTES = 16;
/** Bytes of a column: a bit a row of a segment. */
export const COLUMN_BYTES = SEGMENT_ROWS / 8;
/** Bytes of what the sums of a question start at. */
export const START_BYTES = PLANES * LANE_BYTES;
/** Bytes of the list of a batch's columns. */
export const BATCH_BYTES = 4 * BATCH_COLUMNS;

/** Where things are in a memory, in bytes. */
export interface Layout {
  readonly codeBytes: number;
  /** The code to compare whole codes with. */
  readonly query: number;
  /** The components of a question as whole numbers, bit by bit: one code for their lowest bits, one for the next, the signs last. */
  readonly components: number;
  /** For each question how many candidates there are at each distance, 32 bits each. */
  readonly counts: number;
  readonly countsBytes: number;
  /** For each question what its sums start at, a lane a plane, and the columns that it looks at, as offsets within a segment, 32 bits each. */
  readonly choices: number;
  readonly choiceBytes: number;
  /** The sums of a segment, a column a plane. */
  readonly sums: number;
  readonly candidates: number;
  readonly firstSegment: number;
  readonly segmentBytes: number;
  /** Within a segment, behind its codes; what else is known of its rows, 32 bits each. */
  readonly labels: number;
  readonly columns: number;
  /** Within a segment, behind the columns of all dimensions: one without a bit, and one with all. */
  readonly zeros: number;
  readonly ones: number;
}

/** The layout of codes of this many dimensions. */
export function layoutOf(dimensions: number): Layout {
  const codeBytes = 8 * Math.ceil(dimensions / 64);
  const components = codeBytes;
  const counts = components + COMPONENT_BITS * codeBytes;
  const countsBytes = 4 * (8 * codeBytes + 1);
  const choices = counts + QUESTIONS_AT_ONCE * countsBytes;
  const choiceBytes = START_BYTES + BATCHES_MOST * BATCH_BYTES;
  const sums = choices + QUESTIONS_AT_ONCE * choiceBytes;
  const candidates = sums + PLANES * COLUMN_BYTES;
  const labels = SEGMENT_ROWS * codeBytes;
  const columns = labels + SEGMENT_ROWS * 4;
  const zeros = columns + 8 * codeBytes * COLUMN_BYTES;
  const ones = zeros + COLUMN_BYTES;
  return {
    ...{ codeBytes, query: 0, components, counts, countsBytes, choices, choiceBytes, sums, candidates },
    ...{ labels, columns, zeros, ones },
    firstSegment: pages(candidates + CANDIDATES_MOST * CANDIDATE_BYTES),
    segmentBytes: pages(ones + COLUMN_BYTES),
  };
}

function pages(bytes: number): number {
  return Math.ceil(bytes / PAGE) * PAGE;
}

/** Writes what the sums of a question start at. */
export function writeStart(memory: KernelMemory, choice: number, start: number): void {
  const bytes = new Uint8Array(memory.buffer, choice, START_BYTES);
  for (let plane = 0; plane < PLANES; plane += 1) {
    bytes.fill((start >> plane) & 1 ? 0xff : 0x00, plane * LANE_BYTES, (plane + 1) * LANE_BYTES);
  }
}

/** The offset of a dimension's column within a segment. */
export function columnOf({ columns }: Layout, dimension: number): number {
  return columns + dimension * COLUMN_BYTES;
}

/** Where the columns of a question are listed. */
export function chosenOf(memory: KernelMemory, choice: number): Uint32Array {
  return new Uint32Array(memory.buffer, choice + START_BYTES, BATCHES_MOST * BATCH_COLUMNS);
}

/** Memory that grows. Views of its buffer are detached, or out of date, once it has. */
export interface KernelMemory {
  readonly buffer: ArrayBuffer;
  /** @param pages of 64 KiB */
  grow(pages: number): void;
}

/** The inner loops. All take addresses; ends are exclusive, and nothing may be empty. */
export interface Kernels {
  /** Writes the columns of `TURNED_ROWS` rows: `columns` is the address of the first byte to write, in the column of dimension 0. */
  turn(codes: number, columns: number): void;
  /**
   * Adds the columns of a batch to the sums of rows from `from` to `end`, both bytes within a column: `addSet` counts the bits that are
   * set, `addClear` those that are not, and so does `addFirst`, to what sums start at. `choice` is that of the question, and `BATCH_BYTES`
   * more for each batch before.
   */
  addFirst(choice: number, segment: number, from: number, end: number): void;
  addClear(choice: number, segment: number, from: number, end: number): void;
  addSet(choice: number, segment: number, from: number, end: number): void;
  /**
   * Writes to `candidates`, and counts, the rows whose sums stayed below the overflow, and whose labels are `label` where `mask` has a bit.
   * @param from byte within a column
   * @param row the number of the segment's first row
   * @param endRow the number of the row to end at
   * @param start what sums started at
   * @returns the end of the candidates
   */
  collect(
    from: number,
    row: number,
    endRow: number,
    labels: number,
    mask: number,
    label: number,
    start: number,
    counts: number,
    candidates: number,
  ): number;
  /** Keeps what was measured below `limit`, and the first `ties` at it. @returns the end of what is left */
  keep(candidates: number, end: number, limit: number, ties: number): number;
  /** Measures, and counts, the Hamming distances of whole codes. */
  measure(candidates: number, end: number, query: number, counts: number): void;
  /** Measures the sum of the question's components where the candidate's code has a bit. @returns nothing of use */
  estimate(candidates: number, end: number, components: number): number;
}
