/**
 * Probes /health as another client would, in a process of its own, so that what the attacker does with its replies is
 * not taken for a slow service. Arguments: the address of the service. It probes until it is told to stop, and then
 * sends the times of all answers (ms) to its parent.
 */
import { setTimeout as pause } from 'node:timers/promises';

const PROBE_EVERY_MS = 20;

const [url] = process.argv.slice(2);
const times: number[] = [];
let isStopped = false;
process.once('message', () => void (isStopped = true));
while (!isStopped) {
  const before = performance.now();
  const response = await fetch(`${url}/health`);
  await response.arrayBuffer();
  if (response.status !== 200) throw new Error(`/health answered ${response.status}`);
  times.push(performance.now() - before);
  await pause(PROBE_EVERY_MS);
}
process.send!(times);
process.disconnect();
