import type { BreakingChange } from './breaking-changes.js'

/**
 * Those that the changelog does not name for the coming release: under `[Unreleased]`, in an item that begins with
 * `**Breaking**` and has the operation or the channel between backticks.
 */
export function unnamedChanges(changes: readonly BreakingChange[], changelog: string): BreakingChange[] {
  const [, unreleased = ''] = changelog.split(/^## /m)
  const items = unreleased.split(/^- /m).filter(item => item.startsWith('**Breaking**'))
  return changes.filter(({ of }) => !items.some(item => item.includes(`\`${of}\``)))
}
