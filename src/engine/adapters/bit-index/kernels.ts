/**
 * The layout of vectors' codes (their sign bits) in one block of memory, and the interface of the inner loops of a
 * search over them. It has two implementations, WebAssembly (wasm-kernels.ts) and plain JavaScript (js-kernels.ts),
 * which give bit-identical answers.
 *
 * Every code is stored twice: row by row, to compare whole codes; and bit by bit, as columns. A column has one
 * dimension of all rows of a segment, so that one instruction works on that dimension of many rows (Li and Patel,
 * "BitWeaving", SIGMOD 2013). The counters that add columns up are bit-sliced, too: plane n has bit n of the sums of
 * many rows (Harley and Seal's carry-save adders, in Warren, "Hacker's Delight").
 */

/** Number of rows in a segment. Memory grows by whole segments, so that data is never moved. */
export const SEGMENT_ROWS = 16_384;
/**
 * Greatest number of query vectors (questions) that are searched for together: each part of a segment is compared with
 * all of them while it is in the processor's cache.
 */
export const QUESTIONS_AT_ONCE = 16;
/** Greatest number of candidates of all questions that are searched for together; memory is reserved for them. */
export const MAX_CANDIDATES = 400_000;
/** Size of a candidate (bytes): its row, and its distance or estimate, 32 bits each. */
export const CANDIDATE_BYTES = 8;
/**
 * Number of bits to which each component of a question is rounded for the second pass of a search, including the sign.
 */
export const COMPONENT_BITS = 6;
/** Greatest number of dimensions of a code (the sign bits of a vector, one for each dimension). */
export const MAX_DIMENSIONS = 8_192;

/** Number of columns (one for each dimension) that are added to the sums together. */
export const BATCH_COLUMNS = 16;
/**
 * Greatest number of batches of 16 dimensions that the first pass compares for one question. The 96 dimensions find
 * enough (`BATCHES_OF`), and the sums can count up to 112. The number is even, since a search for links uses half of
 * it.
 */
export const MAX_BATCHES = 6;
/** Number of rows that one step of the loop over a batch adds: one cache line of the processor in each column. */
export const STEP_ROWS = 512;
/** Number of rows whose codes are transposed into columns at a time. */
export const TURNED_ROWS = 16;

/**
 * Number of bits of a sum, which counts the differing bits of a row. A sum starts at 2^(PLANES - 1) - bound, so that
 * its highest bit is set once `bound` bits were counted.
 */
export const PLANES = 8;
/**
 * Number of the bit (from 0, the lowest) of the sums to which a batch adds only its last carry: 4, since the count of a
 * batch of 16 columns is at most 16 = 2^4.
 */
export const CARRY_PLANE = Math.log2(BATCH_COLUMNS);
/** Value of the highest bit of a sum, which is set once the count has reached its bound. */
export const OVERFLOW = 2 ** (PLANES - 1);

/** Unit in which memory grows (bytes): the page size of WebAssembly. */
export const PAGE = 65_536;
/** Size of each bit of the sums' start value (bytes): a vector register, filled with copies of this bit. */
export const LANE_BYTES = 16;
/** Size of a column (bytes): one bit for each row of a segment. */
export const COLUMN_BYTES = SEGMENT_ROWS / 8;
/** Size of the start value of a question's sums (bytes), for all bits of a sum. */
export const START_BYTES = PLANES * LANE_BYTES;
/**
 * Size of the list of the columns that one batch adds (bytes). For each column, the list has its byte offset within a
 * segment, 32 bits.
 */
export const BATCH_BYTES = 4 * BATCH_COLUMNS;

/**
 * Addresses and sizes of the parts of a memory, all in bytes. Addresses count from the start of the memory. A memory
 * begins with one working area for each thread that searches it. The segments with the rows, which all threads share,
 * follow.
 */
export interface Layout {
  /** Size of a code (the sign bits of one vector), a multiple of 8. */
  readonly codeBytes: number;
  /** Address of the question's sign bits, with which whole codes are compared. */
  readonly query: number;
  /**
   * Address of the question's components as whole numbers, bit by bit: one code for their lowest bits, one for the
   * next, and so on, with the signs last.
   */
  readonly components: number;
  /**
   * Address of the tables of counts of all questions. For each question, a table gives the number of its candidates at
   * each distance, 32 bits each.
   */
  readonly counts: number;
  /** Size of the table of counts of one question. */
  readonly countsBytes: number;
  /**
   * Address of the choices of all questions: for each, which columns the first pass adds. A choice has the start value
   * of the sums (16 bytes for each bit), then the columns, as byte offsets within a segment, 32 bits each.
   */
  readonly choices: number;
  /** Size of the choice (start value and list of columns) of one question. */
  readonly choiceBytes: number;
  /** Address of the sums of the rows of a segment, bit-sliced: a column for each bit of the sums. */
  readonly sums: number;
  /** Address of the candidates of all questions: pairs of a row and its distance (in the second pass, its estimate). */
  readonly candidates: number;
  /** Address of the first segment (a block of rows). */
  readonly firstSegment: number;
  /** Size of a segment, in whole pages. */
  readonly segmentBytes: number;
  /** Offset in a segment of the labels of its rows (user number and flags), 32 bits each, after the codes. */
  readonly labels: number;
  /**
   * Offset in a segment of a 32-bit number for each row: the number of the previous row of the same user; -1 for the
   * user's first row. It links the rows of a user.
   */
  readonly previous: number;
  /**
   * Offset in a segment of a 32-bit number for each row: its position among the rows of its user, from 1, including
   * removed rows.
   */
  readonly ordinals: number;
  /** Offset in a segment of the vector number (`vectorNo`) of each row, a 64-bit float each. */
  readonly vectorNos: number;
  /** Offset in a segment of the `memoryNo` of each row, a 64-bit float each. */
  readonly memories: number;
  /** Offset in a segment of the first column, with the bits of dimension 0. */
  readonly columns: number;
  /** Offset in a segment of a column of zeros, after the columns of all dimensions; it fills a batch without effect. */
  readonly zeros: number;
  /** Offset in a segment of a column of ones; it fills a batch that counts clear bits without effect. */
  readonly ones: number;
}

/**
 * Returns the size of a row in a segment without its columns (bytes): its code, and the fields of `Layout` from
 * `labels` to `memories`.
 */
export function rowBytesOf({ codeBytes }: Layout): number {
  return codeBytes + 3 * 4 + 2 * 8;
}

/**
 * Returns the layout for codes with this number of dimensions, as one thread sees it.
 * @param reader number of the thread, from 0; `query` to `candidates` are addresses in its working area
 * @param readers number of working areas
 */
export function layoutOf(dimensions: number, reader = 0, readers = 1): Layout {
  const codeBytes = 8 * Math.ceil(dimensions / 64);
  const areaBytes = pages(areaOf(codeBytes, 0).candidates + MAX_CANDIDATES * CANDIDATE_BYTES);
  const labels = SEGMENT_ROWS * codeBytes;
  const previous = labels + SEGMENT_ROWS * 4;
  const ordinals = previous + SEGMENT_ROWS * 4;
  const vectorNos = ordinals + SEGMENT_ROWS * 4;
  const memories = vectorNos + SEGMENT_ROWS * 8;
  const columns = memories + SEGMENT_ROWS * 8;
  const zeros = columns + 8 * codeBytes * COLUMN_BYTES;
  const ones = zeros + COLUMN_BYTES;
  return {
    codeBytes,
    ...areaOf(codeBytes, reader * areaBytes),
    labels,
    previous,
    ordinals,
    vectorNos,
    memories,
    columns,
    zeros,
    ones,
    firstSegment: readers * areaBytes,
    segmentBytes: pages(ones + COLUMN_BYTES),
  };
}

/** Returns the addresses of the parts of a thread's working area that begins at the address `query`. */
function areaOf(codeBytes: number, query: number) {
  const components = query + codeBytes;
  const counts = components + COMPONENT_BITS * codeBytes;
  const countsBytes = 4 * (8 * codeBytes + 1);
  const choices = counts + QUESTIONS_AT_ONCE * countsBytes;
  const choiceBytes = START_BYTES + MAX_BATCHES * BATCH_BYTES;
  const sums = choices + QUESTIONS_AT_ONCE * choiceBytes;
  const candidates = sums + PLANES * COLUMN_BYTES;
  return { query, components, counts, countsBytes, choices, choiceBytes, sums, candidates };
}

function pages(bytes: number): number {
  return Math.ceil(bytes / PAGE) * PAGE;
}

/**
 * Writes the start value of a question's sums into its choice.
 * @param choice address of the question's choice
 * @param start the start value, 0 to `OVERFLOW` (128)
 */
export function writeStart(memory: KernelMemory, choice: number, start: number): void {
  const bytes = new Uint8Array(memory.buffer, choice, START_BYTES);
  for (let plane = 0; plane < PLANES; plane += 1) {
    bytes.fill((start >> plane) & 1 ? 0xff : 0x00, plane * LANE_BYTES, (plane + 1) * LANE_BYTES);
  }
}

/** Returns the offset of a dimension's column in a segment. */
export function columnOf({ columns }: Layout, dimension: number): number {
  return columns + dimension * COLUMN_BYTES;
}

/**
 * Returns a view of the list of columns in the choice at the address `choice`: what is written to it is in the memory,
 * and it stays right after the memory has grown.
 */
export function chosenOf(memory: KernelMemory, choice: number): Uint32Array {
  return new Uint32Array(memory.buffer, choice + START_BYTES, MAX_BATCHES * BATCH_COLUMNS);
}

/**
 * Memory that can grow without being moved. After it has grown, read `buffer` again, since earlier views cover only a
 * part.
 */
export interface KernelMemory {
  readonly buffer: ArrayBufferLike;
  /**
   * Grows the memory by a number of pages of 64 KiB. With 0, it only updates `buffer` after another thread has grown
   * the memory.
   */
  grow(pages: number): void;
}

/** Greatest number of pages of a memory: all that a 32-bit address can reach. */
export const MAX_PAGES = 65_536;

/**
 * The inner loops of a search. Addresses are in bytes from the start of the memory, offsets in bytes from the start of
 * a column or segment. Ends are exclusive, and no range may be empty.
 */
export interface Kernels {
  /**
   * Transposes the codes of 16 rows (`TURNED_ROWS`) into the columns.
   * @param codes address of the first row's code
   * @param columns address of the first byte to write, in the column of dimension 0
   */
  turn(codes: number, columns: number): void;
  /**
   * Adds the columns of a question's first batch to the start value, and writes the sums. It counts clear bits (0).
   * @param choice address of the question's choice
   * @param segment address of the segment
   * @param from offset of the first byte of each column to add, a multiple of `STEP_ROWS / 8`
   * @param end offset after the last byte, a multiple of `STEP_ROWS / 8`
   */
  addFirst(choice: number, segment: number, from: number, end: number): void;
  /**
   * Adds the columns of a later batch to the sums. It counts clear bits (0). The parameters are those of `addFirst`,
   * but `choice` is higher by `BATCH_BYTES` for each earlier batch.
   */
  addClear(choice: number, segment: number, from: number, end: number): void;
  /** Adds the columns of a later batch to the sums like `addClear`, but counts set bits (1). */
  addSet(choice: number, segment: number, from: number, end: number): void;
  /**
   * Collects candidates: writes the rows whose sums stayed below their bound to `candidates`, with their distances (the
   * numbers of counted bits), and counts them by distance. A row is skipped if its label differs from `label` in the
   * bits of `mask`.
   * @param from offset of the first byte of each plane to read
   * @param row number of the segment's first row
   * @param endRow number after the last row to read
   * @param labels address of the segment's labels
   * @param start start value of the sums
   * @param counts address of the question's counts
   * @param candidates address of the first candidate to write
   * @returns the address after the last candidate
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
  /**
   * Drops far candidates: keeps those whose distance is below `limit`, and the first `ties` candidates with exactly
   * that distance, in their order.
   * @param candidates address of the first candidate
   * @param end address after the last candidate
   * @returns the address after the last candidate that is kept
   */
  keep(candidates: number, end: number, limit: number, ties: number): number;
  /**
   * Writes to each candidate the Hamming distance of its whole code from the question's, and counts candidates by
   * distance.
   * @param candidates address of the first candidate
   * @param end address after the last candidate
   * @param query address of the question's sign bits
   * @param counts address of the question's counts
   */
  measure(candidates: number, end: number, query: number, counts: number): void;
  /**
   * Writes to each candidate an estimate of its similarity: the sum of the question's components at the bits that are
   * set in the candidate's code.
   * @param candidates address of the first candidate
   * @param end address after the last candidate
   * @param components address of the components, bit by bit
   * @returns no meaningful value
   */
  estimate(candidates: number, end: number, components: number): number;
}
