import { isEngineError } from '../errors.ts';
import type { ParseResult, TextAnalyzer } from '../ports.ts';
import { SENSITIVE_GROUPS, type PrivacyPolicy, type ScreenReport, type SensitiveKind } from '../types.ts';
import { groupOf, groupsOf } from './policy.ts';
import { screenDocument } from './screen-document.ts';
import { markMetadata, screenFields, type ScreenedFields } from './screen-memory.ts';
import { startScreening, type Screening } from './screening.ts';

/** Screens what a tenant is about to store. While its policy looks for nothing, all values pass as they are. */
export interface PrivacyGuard {
  /** Whether the policy looks for anything. */
  isOn(): boolean;
  /**
   * Screens the fields of a memory, a patch or a document that is handed in. A policy that marks names the kinds in the
   * metadata, also in that of a patch without any.
   * @throws EngineError `unprocessable` for what the policy refuses; `unavailable` as `TextAnalyzer.find`
   */
  fields<T extends ScreenedFields>(fields: T): Promise<{ readonly fields: T; readonly report: ScreenReport }>;
  /** Screens a document that was read. Throws as `fields`. */
  document(parsed: ParseResult): Promise<ParseResult>;
}

/** What a guard works with. */
export interface GuardOptions {
  /** Returns the tenant's policy as it is now. */
  readonly policy: () => PrivacyPolicy;
  readonly analyzer: TextAnalyzer | null;
  /** Counts values that were marked or redacted, and texts that were refused, by group. */
  readonly count: (labels: { readonly group: string; readonly mode: string }, values: number) => void;
}

/** Makes the guard of a tenant. */
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
      return { fields: { ...screened, metadata: markMetadata(screened.metadata ?? {}, screening) }, report };
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
        const group = SENSITIVE_GROUPS.find((name) => now[name] === 'refuse') ?? 'secrets';
        count({ group, mode: 'refuse' }, 1);
      }
      throw error;
    }
  }
}
