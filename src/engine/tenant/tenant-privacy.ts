import { putPrivacyPolicy, readPrivacyPolicy } from '../control/privacy-policy.ts';
import type { Tenant } from '../engine.ts';
import { serialiseError, isEngineError } from '../errors.ts';
import { createGuard, type PrivacyGuard } from '../privacy/guard.ts';
import type { AddOutcome, NewDocument, NewMemory, ScreenReport } from '../types.ts';
import type { TenantOptions } from './tenant-options.ts';

type PrivacyMethods = Pick<Tenant, 'privacyPolicy' | 'putPrivacyPolicy'>;

/** Makes the methods by which a tenant shows and sets its privacy policy. */
export function createPrivacyMethods({ id, path, control, config, writer }: TenantOptions): PrivacyMethods {
  return {
    privacyPolicy: async () => readPrivacyPolicy(control, config, id),
    async putPrivacyPolicy(policy) {
      // The record comes first: a setting that was changed is never without one.
      await writer.write(path, 'recordAction', { action: 'setting.change', detail: { name: 'privacy', ...policy } });
      putPrivacyPolicy(control, id, policy);
    },
  };
}

/** Makes the guard of what a tenant's callers hand in. */
export function guardOf({ id, control, config, analyzer, metrics }: TenantOptions): PrivacyGuard {
  return createGuard({
    policy: () => readPrivacyPolicy(control, config, id),
    analyzer,
    count: (labels, values) => metrics.sensitiveValues.inc(labels, values),
  });
}

/** An item of an add after its screening: the memory to store with the report, or why it is refused. */
type ScreenedItem = { readonly memory: NewMemory; readonly report: ScreenReport } | { readonly refusal: AddOutcome };

/** Screens the items of an add one by one. An item that the policy refuses leaves the others as they are. */
export async function screenItems(guard: PrivacyGuard, items: readonly NewMemory[]): Promise<ScreenedItem[]> {
  const screened: ScreenedItem[] = [];
  for (const item of items) {
    try {
      const { fields, report } = await guard.fields(item);
      screened.push({ memory: fields, report });
    } catch (error) {
      if (!isEngineError(error, 'unprocessable')) throw error;
      const { code, message } = serialiseError(error);
      screened.push({ refusal: { kind: 'rejected', error: { code, message } } });
    }
  }
  return screened;
}

/** Joins the outcomes of the memories that were written with the refusals, in the order of the items. */
export function joinOutcomes(screened: readonly ScreenedItem[], written: readonly AddOutcome[]): AddOutcome[] {
  const outcomes = written.values();
  return screened.map((item): AddOutcome => {
    if ('refusal' in item) return item.refusal;
    const outcome = outcomes.next().value!;
    return outcome.kind === 'rejected' ? outcome : { ...outcome, screened: item.report };
  });
}

/** Screens what a caller says about a document; its text is screened when it has been read. */
export async function screenHandedIn(guard: PrivacyGuard, document: NewDocument): Promise<NewDocument> {
  const { source, title, type, tags, metadata, externalId } = document;
  const fileName = source.kind === 'upload' ? source.fileName : null;
  const { fields } = await guard.fields({ title, type, tags, metadata, externalId });
  if (fileName === null || source.kind !== 'upload') return { ...document, ...fields };
  const named = await guard.fields({ title: fileName });
  return { ...document, ...fields, source: { ...source, fileName: named.fields.title } };
}
