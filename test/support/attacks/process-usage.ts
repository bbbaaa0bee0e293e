import fs from 'node:fs';

/** Unit in which Linux counts processor time in /proc (s): USER_HZ is 100 everywhere. */
const TICK_S = 0.01;

const read = (pid: number, name: string) =>
  fs.existsSync(`/proc/${pid}/${name}`) ? fs.readFileSync(`/proc/${pid}/${name}`, 'utf8') : '';

/** Returns the memory that a process holds (MB); 0 where the system does not say. */
export function residentMb(pid: number): number {
  return Number(/VmRSS:\s*(\d+)/.exec(read(pid, 'status'))?.[1] ?? 0) / 1024;
}

/** Returns the processor time that all threads of a process have taken (s); 0 where the system does not say. */
export function processorSeconds(pid: number): number {
  // The name of the program, in brackets, may hold blanks.
  const fields = read(pid, 'stat').split(') ').at(-1)!.split(' ');
  return (Number(fields[11] ?? 0) + Number(fields[12] ?? 0)) * TICK_S;
}
