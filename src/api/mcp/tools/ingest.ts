import { z } from 'zod';
import { EngineError, type NewDocument } from '../../../engine/index.ts';
import { acceptFile, toPage } from '../../read-document.ts';
import { takeTokens } from '../../take-tokens.ts';
import type { TenantCall } from '../../route.ts';
import { ingestSchema, ingestUrlSchema } from '../../schemas/documents.ts';
import { LIMITS } from '../../schemas/value-limits.ts';
import { parse } from '../../schemas/parse.ts';
import { text, unboundedText } from '../../schemas/values.ts';
import { DESTROYS, tool } from '../tool.ts';
import { readWhenDone } from './await-work.ts';

export const ingest = tool({
  name: 'ingest',
  title: 'Take in a document',
  description: 'Store a long text (Markdown) or a public web page as a document, which recall then searches in parts.',
  needs: 'add',
  limited: 'adds',
  // A page that has changed since is read again, and its earlier text goes for good.
  annotations: { ...DESTROYS, openWorldHint: true },
  input: z
    .strictObject({
      text: unboundedText.optional().describe('The text; or give url.'),
      url: z.string().optional(),
      title: text(LIMITS.titleCharacters).optional(),
    })
    .refine((input) => (input.text === undefined) !== (input.url === undefined), 'expected either text or url'),
  async run(call, { text, url, title }, run) {
    const { tenant } = call;
    const { document, outcome, jobId, token } = await (url === undefined
      ? addText(call, text ?? '', title)
      : tenant.addDocument(toPage(call, parse(ingestUrlSchema, { url, title }))));
    if (outcome === 'unchanged') return `Document ${document.id} is known and unchanged (${document.state}).`;
    const describe = async () => {
      const { state, progress } = await tenant.getDocument(document.id);
      return `${state}: ${progress.embedded} of ${progress.chunks} parts are embedded`;
    };
    const finished = await readWhenDone(call, { ...run, token, describe }, () => resultOf(call, document.id, jobId));
    return (
      finished ??
      `Document ${document.id} is stored and will be read: job ${jobId ?? ''} is queued; ` +
        `recall with token ${token ?? ''} waits for it.`
    );
  },
});

/**
 * Returns a sentence about a document whose job has ended. For a key with the role `add`, which may not read the
 * document, a document without text counts as read.
 * @throws EngineError `unprocessable` if the document failed, was cancelled or has no text, so that nothing of it can
 *   be recalled
 */
async function resultOf({ tenant, principal }: TenantCall, id: string, jobId: string | null): Promise<string> {
  // A key that only adds reads no document, but the jobs of its own.
  if (principal.role === 'add') {
    const job = jobId === null ? null : await tenant.getJob(jobId);
    if (job !== null && job.state !== 'done') throw unread(id, job.state, job.error);
    return `Document ${id} was read.`;
  }
  const { state, chunks, error } = await tenant.getDocument(id);
  if (state === 'failed' || state === 'empty' || state === 'cancelled') throw unread(id, state, error);
  return `Document ${id} is ${state}: ${chunks} parts${error === null ? '' : `; ${error.message}`}.`;
}

function unread(id: string, state: string, error: { readonly message: string } | null): EngineError {
  const reason = error === null ? '' : `: ${error.message}`;
  return new EngineError('unprocessable', `document ${id} is ${state}, and nothing of it can be recalled${reason}`);
}

function addText(call: TenantCall, text: string, title: string | undefined) {
  takeTokens(call, 'upload_bytes', Buffer.byteLength(text));
  const body = parse(ingestSchema, { text, title, content_type: 'text/markdown' });
  return acceptFile(call, { body, texts: { find: () => undefined } }, (document: NewDocument) =>
    call.tenant.addDocument(document),
  );
}
