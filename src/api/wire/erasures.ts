/** Translates receipts of deletes to the field names of the API. */
import type { Erasure, ErasureSummary } from '../../engine/index.ts';
import type { ErasureItem, ErasureReply } from '../schemas/erasures.ts';

export function erasureItem(erasure: ErasureSummary): ErasureItem {
  const { id, kind, keyId, begunAt, closedAt, by, counts, searched, words, phrases, chainNo, hash } = erasure;
  return {
    id,
    kind,
    key: keyId,
    begun_at: begunAt,
    closed_at: closedAt,
    by: [...by],
    counts: { ...counts },
    searched: [...searched],
    words,
    phrases,
    chain_no: chainNo,
    hash,
  };
}

export function erasureReplyItem(erasure: Erasure): ErasureReply {
  const { ids, words, phrases, salted } = erasure;
  return {
    ...erasureItem({ ...erasure, words: words.length, phrases: phrases.length }),
    ids: [...ids],
    word_hashes: [...words],
    phrase_hashes: [...phrases],
    salt_hash: salted,
  };
}
