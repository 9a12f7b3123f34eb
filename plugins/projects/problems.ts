import { problemTable } from 'busbar/sdk'

export const problems = problemTable({
  notFound: [404, 'E_PROJECT_NOT_FOUND', 'project {projectId} does not exist'],
  slugTaken: [409, 'E_PROJECT_SLUG_TAKEN', 'the slug {slug} is in use by another project, or by one whose clean-up is not done yet; choose another'],
  noSuchUser: [400, 'E_PROJECT_NO_SUCH_USER', 'user_id: there is no user {userId}'],
  ownerGone: [401, 'E_ACCOUNT_GONE', 'this account no longer exists']
})
