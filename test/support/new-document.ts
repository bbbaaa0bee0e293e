import { createHash } from 'node:crypto';
import fs from 'node:fs';
import type { Tenant } from '../../src/engine/engine.ts';
import type { NewDocument } from '../../src/engine/types.ts';

/** Makes the data of a new document, with defaults for all fields that `document` leaves out. */
export function newDocument(source: NewDocument['source'], document: Partial<NewDocument> = {}): NewDocument {
  return {
    source,
    userId: '',
    sessionId: '',
    externalId: null,
    title: '',
    type: null,
    tags: [],
    metadata: {},
    eventTime: null,
    expiresAt: null,
    ...document,
  };
}

/** Writes a Markdown file to the uploads folder as the API does, and returns it as the source of a document. */
export async function upload(
  tenant: Tenant,
  content: string | Buffer,
  fileName = 'notes.md',
): Promise<NewDocument['source']> {
  const bytes = Buffer.from(content);
  const { name, path, createEncoder } = await tenant.createUpload(bytes.length);
  const encoder = createEncoder();
  fs.writeFileSync(path, Buffer.concat([encoder.update(bytes), encoder.end()]));
  const sha256 = createHash('sha256').update(bytes).digest();
  return { kind: 'upload', name, bytes: bytes.length, sha256, fileName, declared: 'markdown', charset: null };
}
