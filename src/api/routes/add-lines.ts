import { EngineError, MAX_RECEIPT_ITEMS, type NewMemory, spanningReceipt, takeTurn } from '../../engine/index.ts';
import { placeOfBody } from '../body-places.ts';
import { logFailure, toEngineError } from '../http-errors.ts';
import { groupsOf, type Line, linesOf } from '../lines.ts';
import { collectedResults, IDLE_MS, streamedResults } from '../line-results.ts';
import { MAX_JSON_BYTES, parseJsonInTurns } from '../read-body.ts';
import { takeTokens } from '../take-tokens.ts';
import { localsOf } from '../reply.ts';
import type { TenantCall } from '../route.ts';
import { admissionCheck } from '../watch-admission.ts';
import { outcomeItem } from '../wire/memories.ts';
import { isItemError, itemError, notedItems, orItemError, parseItem, wantsLines } from './batch-items.ts';

/**
 * Number of lines stored in one transaction: enough to share one fsync, few enough to let interactive adds in between.
 */
const GROUP_LINES = 64;

/**
 * Answers `POST /memory/add/batch` with an NDJSON body: one memory per line, until the client has sent all of them. The
 * next group, of at most 64 lines, is read only when the previous one is on disk and its results are sent, so a fast
 * sender is slowed down rather than buffered. A failure after the first result ends the upload, such as one of the
 * storage, of the receipt, a revoked key, a rate limit, or a JSON reply that takes no further results: the summary then
 * has an `error`, and every line that has a result with an `id` is stored.
 * @param options.withReceipt whether a receipt is kept. It lists the lines that were answered, those of a group whose
 *   entries could not be written excepted, and whether the upload came to its end.
 * @throws EngineError if it fails before the first result, or the client has left; `invalid` if the request has an
 *   idempotency key
 */
export async function addLines(call: TenantCall, { withReceipt }: { readonly withReceipt: boolean }): Promise<void> {
  const { api, tenant, request, response } = call;
  if (request.headers['idempotency-key'] !== undefined) {
    throw new EngineError(
      'invalid',
      'Idempotency-Key: not for NDJSON, whose body is not known before its end; use external_id a line',
    );
  }
  // The key is checked before each group, so that the summary still says which lines are stored.
  const requireAdmitted = admissionCheck(call);
  const { OM_READER_TIMEOUT_MS: readerTimeoutMs } = api.engine.config;
  const results = wantsLines(request)
    ? streamedResults(response, 202, readerTimeoutMs)
    : collectedResults(response, { hold: placeOfBody(request).hold, readerTimeoutMs });
  const summary: { accepted: number; rejected: number; token: string | null; receipt_id?: string } = {
    ...{ accepted: 0, rejected: 0, token: null },
  };
  try {
    const { hold } = placeOfBody(request);
    for await (const group of groupsOf(
      linesOf(request, { maxBytes: MAX_JSON_BYTES, hold, idleMs: IDLE_MS }),
      GROUP_LINES,
    )) {
      // The key may be revoked during the upload; from then on nothing more is written.
      requireAdmitted();
      results.requireRoom(group[0]!.number);
      if (withReceipt && summary.accepted + summary.rejected + group.length > MAX_RECEIPT_ITEMS)
        throw new EngineError('too_large', `a receipt holds ${MAX_RECEIPT_ITEMS} items; send the rest by itself`);
      takeTokens(call, 'batch_items', group.length);
      const items: { readonly number: number; readonly item: ReturnType<typeof parseItem> }[] = [];
      for (const line of group) {
        items.push({ number: line.number, item: await parseLine(line) });
        await takeTurn();
      }
      const good = items.map(({ item }) => item).filter((item): item is NewMemory => !isItemError(item));
      const reply = await tenant.addMemories(good, { bulk: true });
      summary.token = spanningReceipt(summary.token, reply.token);
      const outcomes = reply.outcomes.values();
      const answers = items.map(({ item }) => (isItemError(item) ? item : outcomeItem(outcomes.next().value!)));
      const before = summary.accepted + summary.rejected;
      for (const [place, result] of answers.entries()) {
        summary[isItemError(result) ? 'rejected' : 'accepted']++;
        results.push({ line: items[place]!.number, ...result });
      }
      if (withReceipt) {
        const sent = items.map(({ item }) => item);
        const part = { items: notedItems(sent, answers, before), first: before + 1, isLast: false };
        summary.receipt_id = await tenant.noteBatch({ ...part, id: summary.receipt_id });
      }
      await results.flush();
    }
    if (withReceipt) {
      const part = { items: [], first: summary.accepted + summary.rejected + 1, isLast: true };
      summary.receipt_id = await tenant.noteBatch({ ...part, id: summary.receipt_id });
    }
  } catch (thrown) {
    if (response.destroyed || summary.accepted + summary.rejected === 0) throw thrown;
    logFailure(api.engine.logger, toEngineError(thrown), localsOf(response).requestId);
    return await results.end({ ...summary, ...itemError(thrown) });
  }
  await results.end(summary);
}

async function parseLine(line: Line): Promise<ReturnType<typeof parseItem>> {
  const { bytes } = line;
  if (bytes === null) return itemError(new EngineError('too_large', `the line is over ${MAX_JSON_BYTES} bytes`));
  try {
    return parseItem(await parseJsonInTurns(bytes));
  } catch (error) {
    return orItemError(() => {
      throw error;
    });
  }
}
