import type { Instance } from './kernel.js'

/**
 * The address of a page of the dashboard, for mails and notifications: `path`, which begins with a slash, below
 * `Instance.publicUrl`; undefined where that is. It is never taken from a request: its sender chooses the Host
 * header.
 */
export const publicLink = ({ publicUrl }: Pick<Instance, 'publicUrl'>, path: string): string | undefined =>
  publicUrl === undefined ? undefined : publicUrl + path
