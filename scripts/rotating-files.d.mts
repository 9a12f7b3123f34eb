export function ofFamilies(files: readonly string[]): readonly string[]
export function withoutThoseOfOtherCommits(files: readonly string[]): readonly string[]
