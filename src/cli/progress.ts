import { SingleBar, type Params } from 'cli-progress';
import { cut, span } from './terminal.ts';

/** Shows how far something is, on stderr: a bar on a terminal, elsewhere a line every few seconds. */
export interface Progress {
  /** @param note what else is worth knowing, such as a rate */
  update(done: number, note?: string): void;
  /** Shows the last state; what is printed next starts on a line of its own. */
  stop(): void;
}

const LINE_EVERY_MS = 3_000;
const BAR_WIDTH = 20;

/** @param total in any unit; 0 if it is not known */
export function startProgress(label: string, total: number): Progress {
  return process.stderr.isTTY && total > 0 ? startBar(label, total) : startLines(label, total);
}

function startBar(label: string, total: number): Progress {
  const bar = new SingleBar({
    // Not wider than the terminal: of a line that wrapped only the last part would be drawn over.
    format: (_options, { progress, eta }: Params, { note }: { note: string }) =>
      cut(
        [
          `${label} ${'█'.repeat(Math.round(progress * BAR_WIDTH)).padEnd(BAR_WIDTH, '░')} ${Math.floor(progress * 100)}%`,
          ...(note === '' ? [] : [note]),
          ...(progress < 1 && Number.isFinite(eta) && eta > 0 ? [`${span(eta * 1000)} left`] : []),
        ].join(' · '),
        (process.stderr.columns ?? 80) - 1,
      ),
    // Nothing is switched off in the terminal that would have to be switched on again whatever ends the process.
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
