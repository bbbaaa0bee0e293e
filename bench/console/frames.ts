/** Frames that a page draws while something moves. */
import type { Browser, Page } from 'playwright-core';
import { percentile, report } from '../report.ts';
import { cpuMs } from './browser.ts';

/** Time for which each movement is measured (ms). */
const MEASURED_MS = 4_000;

interface Drawn {
  /** Times between one frame and the next (ms). */
  readonly gaps: readonly number[];
  /** Frames in which `isBlank` was true. */
  readonly blank: number;
}

/**
 * Moves something at each frame and reports frames a second, the longest of 100 gaps but one, and the CPU time of the
 * browser for a frame. In a headless browser all drawing is CPU time, where others have a graphics card.
 * @param step    what moves, as the text of a function of the number of the frame, run in the page
 * @param isBlank tells that a frame lacks what it must show, as the text of a function run in the page
 */
export async function measureFrames(
  browser: Browser,
  page: Page,
  { figure, step, isBlank = '() => false' }: { figure: string; step: string; isBlank?: string },
): Promise<void> {
  const before = await cpuMs(browser);
  const drawn = await page.evaluate<Drawn>(`new Promise((resolve) => {
    const step = ${step}, isBlank = ${isBlank}, gaps = [];
    const begun = performance.now();
    let last = begun, blank = 0;
    const frame = (now) => {
      if (gaps.length > 0 && isBlank()) blank++;
      gaps.push(now - last);
      last = now;
      if (now - begun > ${MEASURED_MS}) return resolve({ gaps: gaps.slice(1), blank });
      step(gaps.length);
      requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
  })`);
  const cpu = (await cpuMs(browser)) - before;
  const total = drawn.gaps.reduce((sum, gap) => sum + gap, 0);
  report(`${figure}_frames_per_s`, (drawn.gaps.length / total) * 1000, {
    p99_gap_ms: percentile(drawn.gaps, 0.99),
    cpu_ms_per_frame: cpu / drawn.gaps.length,
    blank_frames: drawn.blank,
  });
}
