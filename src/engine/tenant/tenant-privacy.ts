import { privacySetting, readPrivacyPolicy } from '../control/privacy-policy.ts';
import type { Tenant } from '../engine.ts';
import type { ScreenedItem } from '../commands/accept.ts';
import { isEngineError } from '../errors.ts';
import { createGuard, type PrivacyGuard } from '../privacy/guard.ts';
import { markMetadata } from '../privacy/screen-memory.ts';
import { isRejected, rejected } from '../rejected-item.ts';
import { nextTurn } from '../turns.ts';
import type { AddItem, NewDocument, NewMemory } from '../types.ts';
import type { TenantOptions } from './tenant-options.ts';

type PrivacyMethods = Pick<Tenant, 'privacyPolicy' | 'putPrivacyPolicy'>;

/** Makes the methods by which a tenant returns and sets its privacy policy. */
export function createPrivacyMethods(options: TenantOptions): PrivacyMethods {
  const { id, path, control, changeControl, config, writer } = options;
  return {
    privacyPolicy: async () => readPrivacyPolicy(control, config, id),
    async putPrivacyPolicy(policy, caller = null) {
      // The record comes first: a setting that was changed is never without one.
      await writer.write(path, 'recordAction', { action: 'setting.change', detail: { name: 'privacy', ...policy } });
      // The writer may answer many calls at once, and this thread waits for each commit to a file.
      await nextTurn();
      await changeControl(caller, 'putSetting', id, ...privacySetting(policy));
    },
  };
}

/**
 * Makes the guard that screens what the tenant's callers hand in, by the tenant's privacy policy at the time of each
 * call.
 */
export function guardOf({ id, control, config, analyzerOf, metrics }: TenantOptions): PrivacyGuard {
  return createGuard({
    policy: () => readPrivacyPolicy(control, config, id),
    analyzer: analyzerOf?.(id) ?? null,
    count: (labels, values) => metrics.sensitiveValues.inc(labels, values),
  });
}

/**
 * Screens the items of an add request for secrets and personal data, one by one. An item that the policy refuses
 * becomes a rejected item, without effect on the others.
 * @throws EngineError `unavailable` with `retryAfterMs` while the analyzer is down and `OM_PII_FAIL` is `refuse`
 */
export async function screenItems(guard: PrivacyGuard, items: readonly AddItem[]): Promise<ScreenedItem[]> {
  const screened: ScreenedItem[] = [];
  for (const item of items) screened.push(isRejected(item) ? item : await screenItem(guard, item));
  return screened;
}

async function screenItem(guard: PrivacyGuard, item: NewMemory): Promise<ScreenedItem> {
  try {
    const { fields, report } = await guard.fields(item);
    return { ...fields, screened: report };
  } catch (error) {
    if (!isEngineError(error, 'unprocessable')) throw error;
    return rejected(error);
  }
}

/**
 * Screens the title, type, tags, metadata, external id and file name of a document. Its URL is only checked: the policy
 * may refuse it, but it is never changed. Text and authors are screened when the document has been read.
 * @throws EngineError `unprocessable` if the policy refuses a value; `unavailable` with `retryAfterMs` while the
 *   analyzer is down and `OM_PII_FAIL` is `refuse`
 */
export async function screenHandedIn(guard: PrivacyGuard, document: NewDocument): Promise<NewDocument> {
  const { source, title, type, tags, metadata, externalId } = document;
  const fileName = source.kind === 'upload' ? source.fileName : null;
  if (source.kind === 'url') await guard.fields({ url: source.url });
  const { fields } = await guard.fields({ title, type, tags, metadata, externalId });
  if (fileName === null || source.kind !== 'upload') return { ...document, ...fields };
  const named = await guard.fields({ title: fileName });
  const marked = markMetadata(fields.metadata, named.report.marked);
  return { ...document, ...fields, metadata: marked, source: { ...source, fileName: named.fields.title } };
}
