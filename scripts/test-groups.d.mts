export function groupsOf(files: readonly string[]): readonly (readonly string[])[]
export function inTurns(groups: readonly (readonly string[])[], seed: string): readonly (readonly string[])[]
export const groupsFolder: string
export function isGroup(program: string | undefined): boolean
