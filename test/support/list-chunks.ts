import type { Tenant } from '../../src/engine/engine.ts';
import type { DocumentChunk, Page } from '../../src/engine/types.ts';

/** Returns a page of the chunks of a document, by default the first 1,000. */
export async function listChunks(
  tenant: Tenant,
  id: string,
  page: Page = { limit: 1_000, offset: 0 },
): Promise<DocumentChunk[]> {
  const chunks: DocumentChunk[] = [];
  for await (const slice of tenant.streamDocumentChunks(id, page)) chunks.push(...slice);
  return chunks;
}
