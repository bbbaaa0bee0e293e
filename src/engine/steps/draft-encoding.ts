/** What the encode step finds out about a memory's text before it is embedded. */

import { classify, type SectorClassifier } from '../sectors/classify.ts';
import type { SectorCorrection } from '../sectors/learned-model.ts';
import type { Classified } from '../store/dynamics.ts';
import type { Claim } from '../store/jobs.ts';
import type { MemoryRow } from '../store/memories.ts';
import { windowsOf } from '../text/windows.ts';
import { SECTORS, type Sector } from '../types.ts';
import { textOfMemory } from './text-of-memory.ts';

/** Result of the classifier by patterns for a text in which it recognises no sector. */
const UNRECOGNISED = classify('', 'patterns');

export interface Draft {
  readonly claim: Claim;
  readonly userNo: number;
  readonly sectors: Classified;
  readonly windows: readonly string[];
}

export function draftOf(
  claim: Claim,
  row: MemoryRow,
  classifier: SectorClassifier,
  correction: SectorCorrection | null,
): Draft {
  const text = textOfMemory(row);
  const recognised = classify(text, classifier, correction);
  const forced = forcedSector(row.metadata);
  return {
    claim,
    userNo: row.user_no,
    sectors: forced
      ? {
          primary: forced,
          additional: sectorsBeside(forced, recognised),
          confidence: 1,
        }
      : recognised,
    windows: cutWindows(text),
  };
}

/** Cuts a text into the texts of the windows that are embedded, in order. */
export function cutWindows(text: string): string[] {
  return windowsOf(text).map((window) => text.slice(window.start, window.end));
}

/** Finds the sector that `metadata.sector` states; undefined if it is absent or none of the five names. */
function forcedSector(metadata: string): Sector | undefined {
  if (!metadata.includes('"sector"')) return undefined;
  const { sector } = JSON.parse(metadata) as { sector?: unknown };
  return SECTORS.find((name) => name === sector);
}

/**
 * Lists the sectors that the classifier recognised in a text, without the one that `metadata.sector` states; empty if
 * it recognised none.
 */
function sectorsBeside(forced: Sector, { primary, additional, confidence }: Classified): Sector[] {
  if (confidence <= UNRECOGNISED.confidence) return [];
  return [primary, ...additional].filter((sector) => sector !== forced);
}
