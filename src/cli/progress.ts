import { SingleBar, type Params } from 'cli-progress';
import { cut, span } from './terminal.ts';

/** Shows progress on stderr: a bar if it is a terminal and the total is known, otherwise a line every few seconds. */
export interface Progress {
  /**
   * Shows the progress so far.
   * @param done amount that is done, in the unit of `total`
   * @param note further information, such as a rate; without it, a progress bar keeps the previous note
   */
  update(done: number, note?: string): void;
  /** Shows the last state and ends the line. */
  stop(): void;
}

/** Interval between lines of progress (ms). */
const LINE_EVERY_MS = 3_000;
const BAR_WIDTH = 20;

/**
 * Starts to show progress on stderr.
 * @param label name of the work, at the beginning of the line
 * @param total amount that `update` reaches at the end, in any unit; 0 if it is not known
 */
export function startProgress(label: string, total: number): Progress {
  return process.stderr.isTTY && total > 0 ? startBar(label, total) : startLines(label, total);
}

function startBar(label: string, total: number): Progress {
  const bar = new SingleBar({
    // Never wider than the terminal: of a wrapped line, only the last part would be redrawn.
    format: (_options, { progress, eta }: Params, { note }: { note: string }) =>
      cut(
        [
          `${label} ${barOf(progress)} ${Math.floor(progress * 100)}%`,
          ...(note === '' ? [] : [note]),
          ...(progress < 1 && Number.isFinite(eta) && eta > 0 ? [`${span(eta * 1000)} left`] : []),
        ].join(' · '),
        (process.stderr.columns ?? 80) - 1,
      ),
    // No terminal setting is changed, so none must be restored if the process is killed.
    hideCursor: false,
    linewrap: true,
    gracefulExit: false,
    stream: process.stderr,
  });
  bar.start(total, 0, { note: '' });
  return {
    update: (done, note) => bar.update(Math.min(total, done), note === undefined ? {} : { note }),
    stop: () => bar.stop(),
  };
}

function barOf(share: number): string {
  return '█'.repeat(Math.round(share * BAR_WIDTH)).padEnd(BAR_WIDTH, '░');
}

function startLines(label: string, total: number): Progress {
  let shownAt = performance.now();
  let line = '';
  let shown = '';
  const show = () => {
    if (line !== shown) process.stderr.write(`${line}\n`);
    shown = line;
    shownAt = performance.now();
  };
  return {
    update(done, note = '') {
      const share = total > 0 ? `${Math.floor((Math.min(done, total) / total) * 100)}%` : '';
      line = [label, share, note && `· ${note}`].filter(Boolean).join(' ');
      if (performance.now() - shownAt >= LINE_EVERY_MS) show();
    },
    stop: show,
  };
}
