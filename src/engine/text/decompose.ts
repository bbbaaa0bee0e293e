import { createRandom } from '../random.ts';

/** A sparse matrix in compressed rows (CSR). */
export interface SparseRows {
  /**
   * For each row, the index in `places` and `values` at which the row begins; the last element is the number of all
   * values.
   */
  readonly starts: Int32Array;
  /** Column of each value. */
  readonly places: Int32Array;
  readonly values: Float64Array;
}

/**
 * Number of vectors that are computed in addition to the requested ones, so that the last requested ones converge
 * sooner.
 */
const SPARE = 10;
/** Number of iterations. Further iterations no longer change the order of search results. */
const ROUNDS = 6;
/** Number of multiplications between two pauses: some 20 ms of work. */
const WORK_BETWEEN_PAUSES = 10_000_000;

/**
 * Computes the right singular vectors of the largest singular values of a sparse matrix, by subspace iteration from
 * random vectors (Halko, Martinsson and Tropp, "Finding structure with randomness", SIAM Review 2011). Equal input and
 * seed give equal vectors.
 * @param options.columns number of columns of the matrix
 * @param options.dimensions number of vectors to return
 * @param options.seed seed of the random vectors that the iteration starts from
 * @param options.pause is awaited after about every ten million multiplications, so that other work can run
 * @returns `dimensions` vectors with a number for each column, largest singular value first; null for a matrix with
 *   fewer rows or columns than `dimensions`
 */
export async function decompose(
  rows: SparseRows,
  {
    columns,
    dimensions,
    seed,
    pause,
  }: {
    readonly columns: number;
    readonly dimensions: number;
    readonly seed: number;
    readonly pause: () => Promise<void>;
  },
): Promise<Float64Array[] | null> {
  const width = Math.min(dimensions + SPARE, columns, rows.starts.length - 1);
  if (width < dimensions) return null;
  const random = createRandom(seed);
  let work = 0;
  const afterWork = async (multiplications: number) => {
    work += multiplications;
    if (work < WORK_BETWEEN_PAUSES) return;
    work = 0;
    await pause();
  };
  let basis: Float64Array[] = Array.from({ length: width }, () =>
    Float64Array.from({ length: columns }, () => random() - 0.5),
  );
  await makeOrthonormal(basis, afterWork);
  let lengths = basis.map(() => 0);
  for (let round = 0; round < ROUNDS; round += 1) {
    const products: ReturnType<typeof multiply>[] = [];
    for (const vector of basis) {
      products.push(multiply(rows, vector));
      await afterWork(2 * rows.values.length);
    }
    lengths = products.map(({ length }) => length);
    basis = products.map(({ back }) => back);
    await makeOrthonormal(basis, afterWork);
  }
  return basis
    .map((vector, place) => ({ vector, length: lengths[place]! }))
    .sort((a, b) => b.length - a.length)
    .slice(0, dimensions)
    .map(({ vector }) => vector);
}

/**
 * Multiplies a vector by the matrix and the product by the transposed matrix. `back` is the final product; `length` is
 * the squared length of the first product.
 */
function multiply(
  { starts, places, values }: SparseRows,
  vector: Float64Array,
): { back: Float64Array; length: number } {
  const back = new Float64Array(vector.length);
  let length = 0;
  for (let row = 0; row + 1 < starts.length; row += 1) {
    const [start, end] = [starts[row]!, starts[row + 1]!];
    let product = 0;
    for (let at = start; at < end; at += 1) product += values[at]! * vector[places[at]!]!;
    length += product * product;
    for (let at = start; at < end; at += 1) back[places[at]!]! += values[at]! * product;
  }
  return { back, length };
}

/** Makes vectors orthogonal and of length 1, in place, by the modified Gram-Schmidt process. */
async function makeOrthonormal(
  vectors: readonly Float64Array[],
  afterWork: (multiplications: number) => Promise<void>,
): Promise<void> {
  for (const [place, vector] of vectors.entries()) {
    for (let other = 0; other < place; other += 1) subtract(vector, vectors[other]!);
    const norm = Math.sqrt(dot(vector, vector)) || 1;
    for (let at = 0; at < vector.length; at += 1) vector[at]! /= norm;
    await afterWork(2 * (place + 1) * vector.length);
  }
}

/** Subtracts from a vector its component along `direction`, a vector of length 1. */
function subtract(vector: Float64Array, direction: Float64Array): void {
  const share = dot(vector, direction);
  for (let at = 0; at < vector.length; at += 1) vector[at]! -= share * direction[at]!;
}

function dot(a: Float64Array, b: Float64Array): number {
  let sum = 0;
  for (let at = 0; at < a.length; at += 1) sum += a[at]! * b[at]!;
  return sum;
}
