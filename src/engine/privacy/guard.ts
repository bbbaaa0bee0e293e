import { isEngineError } from '../errors.ts';
import type { ParseResult, TextAnalyzer } from '../ports.ts';
import { SENSITIVE_GROUPS, type PrivacyPolicy, type ScreenReport, type SensitiveKind } from '../types.ts';
import { groupOf, groupsOf } from './policy.ts';
import { screenDocument } from './screen-document.ts';
import { markMetadata, screenFields, type ScreenedFields } from './screen-memory.ts';
import { startScreening, type Screening } from './screening.ts';

/**
 * Screens what a tenant is about to store for sensitive values, by the tenant's privacy policy. While the policy is
 * off, everything passes unchanged.
 */
export interface PrivacyGuard {
  /** Whether the policy screens at least one group of sensitive values. */
  isOn(): boolean;
  /**
   * Screens the fields of a memory, a patch or a document. If the policy marks a kind of value that was found,
   * `metadata.sensitive` names this kind, even for a patch that has no metadata, unless the metadata would then exceed
   * 16 KiB.
   * @throws EngineError `unprocessable` for values that the policy refuses or would redact in an external id or a URL,
   *   and for over 500,000 values in one field; `unavailable` while the external analyzer cannot be reached and
   *   `OM_PII_FAIL` is `refuse`
   */
  fields<T extends ScreenedFields>(fields: T): Promise<{ readonly fields: T; readonly report: ScreenReport }>;
  /**
   * Screens the text, the title, the authors and the headings of a parsed document.
   * @returns the document to store: markers stand for redacted values, `omissions` counts those of the text, the
   *   `sensitive` of each chunk names the kinds that were marked in it, in the headings above it and in the title, and
   *   that of the document those in its title, authors and outline
   * @throws EngineError `unprocessable` for values that the policy refuses, and for over 500,000 values in the text;
   *   `unavailable` while the external analyzer cannot be reached and `OM_PII_FAIL` is `refuse`
   */
  document(parsed: ParseResult): Promise<ParseResult>;
}

/** What `createGuard` needs. */
export interface GuardOptions {
  /** Returns the tenant's present policy. */
  readonly policy: () => PrivacyPolicy;
  readonly analyzer: TextAnalyzer | null;
  /**
   * Adds to a counter, by group and mode: the number of values that were redacted, the number of kinds that were marked
   * in a memory or document, or 1 for one that was refused.
   */
  readonly count: (labels: { readonly group: string; readonly mode: string }, values: number) => void;
}

/** Creates the guard, which screens what a tenant stores for sensitive values. */
export function createGuard({ policy, analyzer, count }: GuardOptions): PrivacyGuard {
  return {
    isOn: () => groupsOf(policy()).length > 0,
    async fields(fields) {
      const now = policy();
      if (groupsOf(now).length === 0) return { fields, report: { redacted: {}, marked: [] } };
      const screening = startScreening(now, analyzer);
      const screened = await counting(now, screening, () => screenFields(screening, fields));
      const report = screening.report();
      if (report.marked.length === 0) return { fields: screened, report };
      return { fields: { ...screened, metadata: markMetadata(screened.metadata ?? {}, report.marked) }, report };
    },
    async document(parsed) {
      const now = policy();
      if (groupsOf(now).length === 0) return parsed;
      const screening = startScreening(now, analyzer);
      return counting(now, screening, () => screenDocument(screening, now, parsed));
    },
  };

  async function counting<T>(now: PrivacyPolicy, screening: Screening, work: () => Promise<T>): Promise<T> {
    try {
      const result = await work();
      const { redacted, marked } = screening.report();
      const totals = new Map<string, number>(SENSITIVE_GROUPS.map((group) => [group, 0]));
      const add = (kind: string, values: number) => {
        const group = groupOf(kind as SensitiveKind);
        totals.set(group, totals.get(group)! + values);
      };
      for (const [kind, values] of Object.entries(redacted)) add(kind, values);
      for (const kind of marked) add(kind, 1);
      for (const group of SENSITIVE_GROUPS) {
        if (totals.get(group)! > 0) count({ group, mode: now[group] }, totals.get(group)!);
      }
      return result;
    } catch (error) {
      if (isEngineError(error, 'unprocessable')) {
        const groups = new Set([...screening.refused()].map(groupOf));
        // None is known of a name that is refused because it cannot be redacted.
        if (groups.size === 0) groups.add('secrets');
        for (const group of groups) count({ group, mode: 'refuse' }, 1);
      }
      throw error;
    }
  }
}
