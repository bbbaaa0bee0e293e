import { EngineError } from '../errors.ts';
import type { IndexedVector } from '../ports.ts';
import { findModelNumber } from '../store/embeddings.ts';
import type { Store } from '../store/open-store.ts';
import { assertValidVector, decodeVector, encodedLength, type StoredForm } from '../store/vector-encoding.ts';
import { insertStoredVector, type VectorSpace } from '../store/vectors.ts';
import type { PortableMemory, PortableVector } from '../types.ts';
import type { WriteContext } from './write-context.ts';

/** A vector of an imported line whose model this file knows. */
interface FittingVector {
  readonly space: VectorSpace;
  readonly vector: PortableVector;
  readonly form: StoredForm;
  readonly bytes: Buffer;
  readonly embedding: Float32Array;
}

/**
 * Decodes those vectors of an imported line whose model the file knows. Other vectors are ignored; the memory is
 * embedded again instead.
 * @throws EngineError `invalid` for a vector of a wrong length or with invalid components, and for a window of which
 *   the line has two vectors of one model
 */
export function fittingVectors(store: Store, { vectors = [] }: PortableMemory): FittingVector[] {
  const places = new Set<string>();
  return vectors.flatMap((vector) => {
    const { provider, model, dimensions, encoding, window: windowNo } = vector;
    const modelNo = findModelNumber(store, { provider, model, dimensions, encoding });
    if (modelNo === undefined) return [];
    const place = `${modelNo} ${windowNo}`;
    if (places.has(place)) throw new EngineError('invalid', `vectors: window ${windowNo} has two vectors of ${model}`);
    places.add(place);
    const form: StoredForm = encoding === 'int5' ? 'int5' : (vector.precision ?? 'float32');
    const bytes = Buffer.from(vector.data, 'base64');
    const isWhole = bytes.length === encodedLength(form, dimensions);
    const embedding = isWhole ? decodeVector(bytes, form, dimensions) : undefined;
    try {
      if (embedding === undefined) throw new EngineError('invalid', 'its length');
      assertValidVector(embedding, dimensions);
    } catch (cause) {
      throw new EngineError('invalid', `vectors: window ${windowNo} is no vector of ${model}`, { cause });
    }
    return [{ space: { modelNo, dimensions, encoding }, vector, form, bytes, embedding }];
  });
}

/** Stores vectors of a memory, and adds them to their indexes. */
export function storeVectors(
  { store, indexes }: WriteContext,
  { memory, userNo }: { readonly memory: number; readonly userNo: number },
  vectors: readonly FittingVector[],
): void {
  const added = vectors.map(({ space, vector: { window: windowNo, role }, form, bytes, embedding }) => {
    const vectorNo = insertStoredVector(store, space, { memory, userNo, windowNo, role, form, bytes });
    return { modelNo: space.modelNo, indexed: { vectorNo, memory, userNo, role, embedding } satisfies IndexedVector };
  });
  for (const [modelNo, group] of Map.groupBy(added, ({ modelNo: no }) => no))
    indexes.get(modelNo)?.add(group.map(({ indexed }) => indexed));
}
