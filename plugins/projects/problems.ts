import { problemTable } from 'busbar/sdk'

export const problems = problemTable({
  notFound: [404, 'E_PROJECT_NOT_FOUND', 'project {projectId} does not exist'],
  slugTaken: [
    409,
    'E_PROJECT_SLUG_TAKEN',
    'the slug {slug} is in use by another project, or by one whose clean-up is not done yet',
    { field: 'slug', remedy: 'choose another' }
  ],
  noSuchUser: [400, 'E_PROJECT_NO_SUCH_USER', 'user_id: there is no user {userId}', { field: 'user_id' }],
  noSuchAddress: [
    400,
    'E_PROJECT_NO_SUCH_ADDRESS',
    'email: no user on this platform has this address; an administrator can invite them',
    { field: 'email' }
  ],
  ownsIt: [
    400,
    'E_PROJECT_OWNER',
    'this user owns the project and cannot be a member of it: an administrator can transfer it'
  ],
  tooMany: [
    409,
    'E_PROJECT_MEMBERS_FULL',
    'a project has at most {most} members',
    'remove one first, or share it with everybody'
  ],
  ownerGone: [401, 'E_ACCOUNT_GONE', 'this account no longer exists']
})
