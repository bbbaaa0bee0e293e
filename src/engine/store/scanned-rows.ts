/**
 * Reads and writes the texts of documents and standing queries, for the scan that searches them for sensitive values.
 */

import type { Metadata, NewStandingQuery } from '../types.ts';
import type { Store } from './open-store.ts';
import { parseStored } from './stored-json.ts';

/** The texts of a generation (one parsed version of a document), which the caller stated or the parser found. */
export interface GenerationTexts {
  readonly title: string;
  readonly givenTitle: string;
  readonly fileName: string;
  readonly type: string | null;
  readonly authors: readonly string[];
  readonly tags: readonly string[];
  readonly metadata: Metadata;
}

/**
 * A generation (one parsed version of a document), with the id, external id and URL by which callers know its document.
 */
interface ScannedGeneration {
  readonly generationNo: number;
  readonly documentId: string;
  readonly url: string;
  readonly externalId: string;
  readonly texts: GenerationTexts;
}

/** A standing query (a stored query that is compared with each new memory), with its number. */
interface ScannedQuery extends Pick<NewStandingQuery, 'query' | 'filter' | 'given'> {
  readonly queryNo: number;
  readonly id: string;
}

/** Selects a page of a scan: at most `limit` rows with numbers above `after`, of one user or of all users. */
export interface ScanPage {
  readonly userId: string | undefined;
  readonly after: number;
  readonly limit: number;
}

/** Lists generations (parsed versions of documents) by number, replaced and hidden ones included. */
export function listGenerationsAfter(store: Store, { userId, ...page }: ScanPage): ScannedGeneration[] {
  const rows = store
    .prepare(
      `SELECT g.generation_no AS generationNo, d.id AS documentId, g.url, d.external_id AS externalId, g.title,
         g.given_title AS givenTitle, g.file_name AS fileName, g.type, g.authors, g.tags, g.metadata
       FROM document_generations g CROSS JOIN documents d ON d.document_no = g.document_no
       WHERE g.generation_no > :after AND (:userId IS NULL OR d.user_id = :userId)
       ORDER BY g.generation_no LIMIT :limit`,
    )
    .all({ userId: userId ?? null, ...page }) as (Omit<ScannedGeneration, 'texts'> &
    Pick<GenerationTexts, 'title' | 'givenTitle' | 'fileName' | 'type'> & {
      readonly [name in 'authors' | 'tags' | 'metadata']: string;
    })[];
  return rows.map(({ generationNo, documentId, url, externalId, authors, tags, metadata, ...plain }) => ({
    ...{ generationNo, documentId, url, externalId },
    texts: {
      ...plain,
      authors: parseStored(authors) as string[],
      tags: parseStored(tags) as string[],
      metadata: parseStored(metadata) as Metadata,
    },
  }));
}

/** Stores changed texts of a generation (parsed version of a document). Call inside a write. */
export function putGenerationTexts(
  store: Store,
  generationNo: number,
  { authors, tags, metadata, ...plain }: GenerationTexts,
): void {
  const lists = { authors: JSON.stringify(authors), tags: JSON.stringify(tags), metadata: JSON.stringify(metadata) };
  store
    .prepare(
      `UPDATE document_generations SET title = :title, given_title = :givenTitle, file_name = :fileName, type = :type,
         authors = :authors, tags = :tags, metadata = :metadata WHERE generation_no = :generationNo`,
    )
    .run({ generationNo, ...plain, ...lists });
}

/** Lists standing queries (stored queries that are compared with each new memory) by number. */
export function listStandingAfter(store: Store, { userId, ...page }: ScanPage): ScannedQuery[] {
  const rows = store
    .prepare(
      `SELECT query_no AS queryNo, id, query, filter, given FROM standing_queries
       WHERE query_no > :after AND (:userId IS NULL OR user_id = :userId) ORDER BY query_no LIMIT :limit`,
    )
    .all({ userId: userId ?? null, ...page }) as (Pick<ScannedQuery, 'queryNo' | 'id' | 'query'> & {
    readonly [name in 'filter' | 'given']: string;
  })[];
  return rows.map(({ filter, given, ...row }) => ({
    ...row,
    filter: parseStored(filter) as ScannedQuery['filter'],
    given: parseStored(given) as ScannedQuery['given'],
  }));
}
