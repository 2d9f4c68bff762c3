/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* How an interface is taken, on a kernel that is played here. */
#include "config.h"

#include "dev/xdp/dev.c"
#include "dev/xdp/ethtool.h"
#include "tests/support/test.h"

enum { IFINDEX = 7 };

static struct {
	/* Linux 6.6: packets of several frames */
	bool has_sg;
	/* the interface is a card, which has no zero-copy */
	bool is_card;
	/* other reasons why a mode does not work, with SG or without */
	int native_err, generic_err;
	/* another program is attached, by whoever has the queue as well, or not */
	bool is_foreign, is_in_use;
	/* how often a driver was asked for zero-copy */
	unsigned restarts;
	/* what there is */
	int rings, steers;
} kernel;

struct steer {
	struct steer_params params;
};

static struct steer steer;

int services_adopt_fd(int fd UNUSED, _Atomic int *slot UNUSED)
{
	return 0;
}

bool steer_load_is_possible(void)
{
	return true;
}

int steer_create(const struct steer_params *params, struct steer **steer_out)
{
	steer.params = *params;
	kernel.steers++;
	*steer_out = &steer;
	return 0;
}

void steer_destroy(struct steer *gone)
{
	kernel.steers -= gone != NULL;
}

int steer_attach(struct steer *attached UNUSED)
{
	return kernel.is_foreign ? -EBUSY : 0;
}

int steer_check(const struct steer *checked UNUSED)
{
	return 0;
}

uint64_t steer_fragments(const struct steer *read UNUSED)
{
	return 0;
}

int steer_set_mac(struct steer *told UNUSED, const uint8_t *mac UNUSED)
{
	return 0;
}

int steer_add(struct steer *to UNUSED, const struct flow_rule *rule UNUSED)
{
	return 0;
}

void steer_rights_go(struct steer *of UNUSED)
{
}

void steer_remove(struct steer *from UNUSED, const struct flow_rule *rule UNUSED)
{
}

void xdp_ring_module(void)
{
}

int xdp_ring_create(struct xdp_dev *dev UNUSED, uint16_t bind_flags,
		    struct xdp_ring **ring_out)
{
	static struct xdp_ring ring;
	int err = steer.params.is_native ? kernel.native_err : kernel.generic_err;

	if (steer.params.is_native && bind_flags & XDP_ZEROCOPY) {
		CHECK(kernel.is_card);
		return -EOPNOTSUPP;
	}
	if (bind_flags & XDP_USE_SG && !kernel.has_sg)
		return -EINVAL;
	if (err)
		return err;
	kernel.rings++;
	*ring_out = &ring;
	return 0;
}

bool xdp_queue_is_taken(struct xdp_dev *dev UNUSED, uint16_t bind_flags)
{
	kernel.restarts += !(bind_flags & XDP_COPY);
	return kernel.is_in_use;
}

void xdp_ring_start(struct xdp_ring *ring UNUSED, struct pkt_pool *pool UNUSED)
{
}

void xdp_ring_destroy(struct xdp_ring *ring UNUSED)
{
	kernel.rings--;
}

uint64_t xsk_drops(const struct xsk *xsk UNUSED)
{
	return 0;
}

bool xsk_was_unbound(const struct xsk *xsk UNUSED)
{
	return false;
}

uint32_t queues_count(struct queues_of *of UNUSED, uint32_t limit UNUSED)
{
	return 1;
}

bool queues_may_be_more(const struct queues_of *of UNUSED, int by UNUSED, uint32_t cnt UNUSED)
{
	return true;
}

void tags_see(struct tags *tags UNUSED, const struct dev *dev UNUSED, bool is_virtual UNUSED)
{
}

void tags_ending(struct tags *tags UNUSED, const struct dev *dev UNUSED, bool is_ending UNUSED)
{
}

void owner_init(struct owner *owner UNUSED)
{
}

void owner_claim(struct owner *owner UNUSED, int ifindex UNUSED)
{
}

void owner_release(struct owner *owner UNUSED)
{
}

int owner_ask(int ifindex UNUSED)
{
	return 0;
}

/* -- a case ------------------------------------------------------------------------- */

static struct dev_verdict why;
static struct dev *dev;

static int open_with(enum xdp_wish wish, uint32_t mtu)
{
	const struct xdp_params params = { .mode = wish, .has_multi_buffer = true };
	const struct backend_request request = {
		.ifindex = IFINDEX,
		.name = "v0",
		.mtu = mtu,
		.is_virtual = !kernel.is_card,
		.frame_cnt = 64,
		.pages = REGION_SMALL_PAGES,
	};
	struct backend *backend = backend_make(&params);

	why = (struct dev_verdict){ .err = 0 };
	return backend->open(backend, &request, &dev, &why);
}

static void end(void)
{
	dev->ops->close(dev);
	CHECK_EQ(kernel.rings, 0);
	CHECK_EQ(kernel.steers, 0);
}

static void expect_refused(enum xdp_wish wish, uint32_t mtu, const char *text)
{
	CHECK_EQ(open_with(wish, mtu), -EOPNOTSUPP);
	CHECK_EQ(why.refusal, DEV_REFUSED_KIND);
	CHECK(strstr(why.text, text));
	CHECK_EQ(kernel.rings, 0);
	CHECK_EQ(kernel.steers, 0);
}

static int link_changed(uint32_t mtu)
{
	dev->mtu = mtu;
	return dev->ops->link_changed(dev);
}

TEST(packets_of_several_frames)
{
	memset(&kernel, 0, sizeof(kernel));
	kernel.has_sg = true;
	CHECK_EQ(open_with(XDP_WISH_AUTO, 9000), 0);
	CHECK(strstr(dev->mode, "generic"));
	CHECK(!steer.params.is_single);
	CHECK_EQ(link_changed(60000), 0);
	end();
}

/* Before Linux 6.6. Generic mode would lose segments that the kernel has joined. */
TEST(without_them_native_mode_is_taken)
{
	memset(&kernel, 0, sizeof(kernel));
	CHECK_EQ(open_with(XDP_WISH_AUTO, 1500), 0);
	CHECK_STR(dev->mode, "native, copy, single buffers");
	CHECK(steer.params.is_single);
	end();
	CHECK_EQ(open_with(XDP_WISH_NATIVE, 1500), 0);
	CHECK(steer.params.is_single);
	end();
	expect_refused(XDP_WISH_GENERIC, 1500, "before Linux 6.6");
	kernel.native_err = -EOPNOTSUPP;
	expect_refused(XDP_WISH_AUTO, 1500, "before Linux 6.6");
}

TEST(without_them_a_packet_fits_into_a_frame)
{
	memset(&kernel, 0, sizeof(kernel));
	CHECK_EQ(open_with(XDP_WISH_NATIVE, 4096 - 256 - 14), 0);
	end();
	expect_refused(XDP_WISH_NATIVE, 4096 - 256 - 13, "before Linux 6.6");
	CHECK_EQ(open_with(XDP_WISH_NATIVE, 1500), 0);
	CHECK_EQ(link_changed(2048 - 256 - 14), 0);
	CHECK_EQ(link_changed(2048 - 256 - 13), -EOPNOTSUPP);
	CHECK_EQ(link_changed(1500), 0);
	end();
}

/* What is wrong is another thing. */
TEST(other_errors_are_what_they_are)
{
	memset(&kernel, 0, sizeof(kernel));
	kernel.native_err = kernel.generic_err = -EINVAL;
	CHECK_EQ(open_with(XDP_WISH_AUTO, 1500), -EINVAL);
	CHECK_EQ(why.refusal, DEV_REFUSED_ERROR);
}

static bool may_be_partial(enum xdp_wish wish)
{
	bool result;

	CHECK_EQ(open_with(wish, 1500), 0);
	result = dev->caps.rx_partial_csum;
	end();
	return result;
}

/* virtio, of a host that joins segments and does not let its guest refuse them, has no
 * native mode. */
TEST(a_neighbour_on_the_host_leaves_checksums_to_the_card)
{
	memset(&kernel, 0, sizeof(kernel));
	kernel.has_sg = true;
	CHECK(may_be_partial(XDP_WISH_AUTO));
	CHECK(may_be_partial(XDP_WISH_NATIVE));
	kernel.is_card = true;
	CHECK(!may_be_partial(XDP_WISH_AUTO));
	CHECK(may_be_partial(XDP_WISH_GENERIC));
	kernel.native_err = -EOPNOTSUPP;
	CHECK(may_be_partial(XDP_WISH_AUTO));
}

/* Who has attached it goes on undisturbed while we ask whether he has the queues. */
TEST(anothers_program_is_not_disturbed)
{
	memset(&kernel, 0, sizeof(kernel));
	kernel.is_card = kernel.is_foreign = true;
	CHECK_EQ(open_with(XDP_WISH_AUTO, 1500), -EBUSY);
	CHECK_EQ(why.refusal, DEV_REFUSED_FOREIGN_PROGRAM);
	kernel.is_in_use = true;
	CHECK_EQ(open_with(XDP_WISH_ZC, 1500), -EEXIST);
	CHECK_EQ(why.refusal, DEV_REFUSED_IN_USE);
	CHECK_EQ(kernel.restarts, 0);
	CHECK_EQ(kernel.steers, 0);
}
