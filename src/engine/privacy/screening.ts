import { setImmediate as yieldTurn } from 'node:timers/promises';
import { EngineError } from '../errors.ts';
import type { PrivacyPolicy, ScreenReport, SensitiveKind, SensitiveSpan } from '../types.ts';
import type { TextAnalyzer } from '../ports.ts';
import { findSensitiveInSteps, withoutOverlaps } from './find-sensitive.ts';
import { groupOf, groupsOf } from './policy.ts';

/** Longest time for which a screening holds its thread before it gives others a turn (ms). */
const TURN_MS = 4;
/** Length of text that is looked through at once. */
const PIECE = 256 * 1024;
/** Length by which pieces overlap, so that a value at the end of a piece is seen whole in the next one. */
const OVERLAP = 20 * 1024;
/** The fields of prose, which an analyzer is asked about. The others hold names and data. */
const PROSE: ReadonlySet<string> = new Set(['content', 'title', 'gist', 'document']);

/** The screening of one memory or document: its fields are passed in one after the other, then its report is read. */
export interface Screening {
  /**
   * Looks for sensitive values in a field and does with them what the policy says.
   * @param field name of the field, for an error
   * @param context text that says what the value is, such as the key of a metadata value; '' for none
   * @returns the text to store
   * @throws EngineError `unprocessable` if the policy refuses a kind that was found; it names kind and field only
   */
  screen(field: string, text: string, context?: string): Promise<string>;
  /** Finds the sensitive values of a field, ordered and without overlaps. */
  find(field: string, text: string): Promise<SensitiveSpan[]>;
  /** Counts spans that `find` returned, and refuses or redacts them as `screen` does. */
  apply(field: string, text: string, spans: readonly SensitiveSpan[]): string;
  report(): ScreenReport;
}

/**
 * Begins a screening by a policy.
 * @param analyzer finds further personal values in prose; null for none
 */
export function startScreening(policy: PrivacyPolicy, analyzer: TextAnalyzer | null): Screening {
  const redacted: Partial<Record<SensitiveKind, number>> = {};
  const marked = new Set<SensitiveKind>();
  const groups = groupsOf(policy);
  let turnEndsAt = performance.now() + TURN_MS;

  const findHere = async (text: string): Promise<SensitiveSpan[]> => {
    const steps = findSensitiveInSteps(text, groups);
    for (let step = steps.next(); ; step = steps.next()) {
      if (step.done) return step.value;
      if (performance.now() < turnEndsAt) continue;
      await yieldTurn();
      turnEndsAt = performance.now() + TURN_MS;
    }
  };
  const find = async (field: string, text: string): Promise<SensitiveSpan[]> => {
    const found: SensitiveSpan[] = [];
    for (let from = 0; from === 0 || from + OVERLAP < text.length; from += PIECE - OVERLAP) {
      const spans = await findHere(text.slice(from, from + PIECE));
      found.push(...spans.map((span) => ({ ...span, start: span.start + from, end: span.end + from })));
    }
    const asks = analyzer !== null && policy.personal !== 'off' && PROSE.has(field) && text.trim() !== '';
    return withoutOverlaps(asks ? [...found, ...(await analyzer.find(text))] : found);
  };
  const apply = (field: string, text: string, spans: readonly SensitiveSpan[]): string => {
    const refused = new Set(spans.map(({ kind }) => kind).filter((kind) => policy[groupOf(kind)] === 'refuse'));
    if (refused.size > 0) throw refusalOf(field, [...refused]);
    for (const { kind } of spans) {
      const mode = policy[groupOf(kind)];
      if (mode === 'redact') redacted[kind] = (redacted[kind] ?? 0) + 1;
      if (mode === 'mark') marked.add(kind);
    }
    return redactSpans(
      text,
      spans.filter(({ kind }) => policy[groupOf(kind)] === 'redact'),
    );
  };
  return {
    find,
    apply,
    async screen(field, text, context = '') {
      const spans = (await find(field, context + text)).filter(({ end }) => end > context.length);
      const inText = spans.map(({ kind, start, end }) => ({
        kind,
        start: Math.max(0, start - context.length),
        end: end - context.length,
      }));
      return apply(field, text, inText);
    },
    report: () => ({ redacted: { ...redacted }, marked: [...marked].sort() }),
  };
}

/** Makes the error of a policy that refuses what was found in a field. */
function refusalOf(field: string, kinds: readonly SensitiveKind[]): EngineError {
  const message = `${field}: holds ${[...kinds].sort().join(', ')}, which this tenant's privacy settings refuse`;
  return new EngineError('unprocessable', message);
}

/** Returns the marker that stands in place of a value. */
export function markerOf(kind: SensitiveKind): string {
  return `[REDACTED:${kind}]`;
}

/** Replaces spans, which are ordered and do not overlap, by their markers. */
function redactSpans(text: string, spans: readonly SensitiveSpan[]): string {
  let result = '';
  let from = 0;
  for (const { kind, start, end } of spans) {
    result += text.slice(from, start) + markerOf(kind);
    from = end;
  }
  return result + text.slice(from);
}
