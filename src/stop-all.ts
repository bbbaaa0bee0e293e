/** A part of a process that was started. */
export interface Stoppable {
  stop(): void | Promise<void>;
}

/**
 * Stops parts one after another, the last first. A part that fails to stop does not keep the others from being stopped.
 * @throws the first error of a part, after all were asked to stop
 */
export async function stopAll(parts: readonly Stoppable[]): Promise<void> {
  const errors: unknown[] = [];
  for (const part of parts.toReversed()) {
    try {
      await part.stop();
    } catch (error) {
      errors.push(error);
    }
  }
  if (errors.length > 0) throw errors[0];
}
