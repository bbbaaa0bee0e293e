import { cosine, decodeVector, encodeVector } from '../../../src/engine/store/vector-encoding.ts';
import { describeStoredIndex } from '../../conformance/stored-vector-index.ts';
import { DIMENSIONS } from '../../conformance/vector-index.ts';

for (const encoding of ['float32', 'int5'] as const) {
  describeStoredIndex({
    choice: 'vec0',
    encoding,
    measure: (query, vector) => cosine(query, decodeVector(encodeVector(vector, encoding), encoding, DIMENSIONS)),
  });
}
