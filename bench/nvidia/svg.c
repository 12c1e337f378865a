/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The report as a picture: per cell and arm a bar for the p99 on a log axis, and one for the
 * best-effort work kept. Every bar has its arm's name before it and its value behind it, and the
 * arms differ in pattern and brightness: nothing depends on colour.
 */
#include <math.h>
#include <string.h>

#include "report.h"

enum {
	WIDTH = 1000,
	LEFT = 24,
	BARS = LEFT + 84,    /* where the p99 bars begin, behind the arms' names */
	BARS_WIDTH = 450,    /* their values need 70 more */
	SHARES = LEFT + 650, /* where the share bars begin */
	SHARES_WIDTH = 240,  /* to 100 %; their values need 60 more */
	TOP = 168,           /* below title, legend and axis */
	ROW = 19,
	BAR = 13,
	HEAD = 28, /* a cell's name, and the space above it */
};

static const char *const fill[ARMS] = {
	[ARM_ALONE] = "#fff",
	[ARM_DEFAULT] = "url(#dots)",
	[ARM_MPS] = "url(#hatch)",
	[ARM_GPREEMPT] = "#0072b2",
};

static const char *const meaning[ARMS] = {
	[ARM_ALONE] = "alone: nobody else on the GPU",
	[ARM_DEFAULT] = "default: the driver's sharing",
	[ARM_MPS] = "mps: with client priorities",
	[ARM_GPREEMPT] = "gpreempt",
};

struct axis {
	double low, high; /* log10 of microseconds */
};

static void text(FILE *out, const char *s)
{
	for (; *s; s++) {
		if (*s == '&')
			fputs("&amp;", out);
		else if (*s == '<')
			fputs("&lt;", out);
		else
			fputc(*s, out);
	}
}

static const char *duration(char *out, size_t size, double us)
{
	if (us < 999.5)
		snprintf(out, size, "%.0f us", us);
	else
		snprintf(out, size, us < 9995 ? "%.2f ms" : "%.1f ms", us / 1e3);
	return out;
}

/* Alone, a best-effort load keeps 100 %: there is no bar for that. */
static bool shown(const struct cell_result *c, enum arm arm)
{
	const struct arm_result *a = &c->arm[arm];

	return a->requests || a->failures || (a->has_share && arm != ARM_ALONE);
}

static int cell_height(const struct cell_result *c)
{
	int rows = 0;

	for (enum arm arm = 0; arm < ARMS; arm++)
		rows += shown(c, arm);
	return rows ? HEAD + rows * ROW : 0;
}

static struct axis axis_of(const struct report *r)
{
	double low = 1e12, high = 0;

	for (unsigned i = 0; i < r->ncells; i++)
		for (enum arm arm = 0; arm < ARMS; arm++) {
			const struct arm_result *a = &r->cell[i].arm[arm];

			if (!a->requests || !(a->p99_us > 0))
				continue;
			low = a->p99_us < low ? a->p99_us : low;
			high = a->p99_us > high ? a->p99_us : high;
		}
	if (high <= 0)
		return (struct axis){2, 4};
	/* The shortest bar has a length, too. */
	return (struct axis){floor(log10(low * 0.7)), log10(high * 1.02)};
}

static double place(const struct axis *x, double us)
{
	double share = (log10(us) - x->low) / (x->high - x->low);

	return BARS_WIDTH * fmin(fmax(share, 0.002), 1);
}

static void head(FILE *out, const struct report *r, int height)
{
	fprintf(out,
	        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
	        "viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" font-size=\"13\" fill=\"#222\">\n"
	        "<defs><pattern id=\"hatch\" width=\"6\" height=\"6\" "
	        "patternUnits=\"userSpaceOnUse\" patternTransform=\"rotate(45)\">"
	        "<rect width=\"6\" height=\"6\" fill=\"#fff\"/>"
	        "<rect width=\"2\" height=\"6\" fill=\"#777\"/></pattern>"
	        "<pattern id=\"dots\" width=\"5\" height=\"5\" patternUnits=\"userSpaceOnUse\">"
	        "<rect width=\"5\" height=\"5\" fill=\"#f0c36d\"/>"
	        "<circle cx=\"2.5\" cy=\"2.5\" r=\"1\" fill=\"#7a5a10\"/></pattern></defs>\n"
	        "<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n"
	        "<text x=\"%d\" y=\"30\" font-size=\"18\" font-weight=\"bold\">Response time (p99) "
	        "of latency-critical work, and best-effort work kept</text>\n<text x=\"%d\" "
	        "y=\"52\" fill=\"#555\">",
	        WIDTH, height, WIDTH, height, LEFT, LEFT);
	text(out, r->gpu[0] ? r->gpu : "unknown GPU");
	fputs(", driver ", out);
	text(out, r->driver[0] ? r->driver : "unknown");
	text(out, r->quick ? ", QUICK: a smoke test" : "");
	fputs("</text>\n", out);
}

static void legend(FILE *out)
{
	static const int x[ARMS] = {LEFT, LEFT + 260, LEFT + 510, LEFT + 740};

	for (enum arm arm = 0; arm < ARMS; arm++) {
		fprintf(out,
		        "<rect x=\"%d\" y=\"68\" width=\"22\" height=\"%d\" fill=\"%s\" "
		        "stroke=\"#444\"/><text x=\"%d\" y=\"80\">",
		        x[arm], BAR, fill[arm], x[arm] + 29);
		text(out, meaning[arm]);
		fputs("</text>\n", out);
	}
}

static void axes(FILE *out, const struct axis *x, int bottom)
{
	char label[32];

	fprintf(out,
	        "<text x=\"%d\" y=\"118\" font-weight=\"bold\">p99, log scale</text>"
	        "<text x=\"%d\" y=\"118\" font-weight=\"bold\">best-effort work kept, %% of one "
	        "alone</text>\n",
	        BARS, SHARES);
	for (int at = (int)x->low; at <= x->high + 1e-9; at++) { /* it begins at a power of ten */
		double px = BARS + BARS_WIDTH * (at - x->low) / (x->high - x->low);

		snprintf(label, sizeof label, at < 3 ? "%g us" : "%g ms",
		         pow(10, at < 3 ? at : at - 3));
		fprintf(out,
		        "<path d=\"M%.1f %dV%d\" stroke=\"#ccc\"/><text x=\"%.1f\" y=\"%d\" "
		        "font-size=\"11\" text-anchor=\"middle\" fill=\"#555\">%s</text>\n",
		        px, TOP - 24, bottom, px, TOP - 30, label);
	}
	for (int percent = 0; percent <= 100; percent += 50)
		fprintf(out,
		        "<path d=\"M%d %dV%d\" stroke=\"#ccc\"/><text x=\"%d\" y=\"%d\" "
		        "font-size=\"11\" text-anchor=\"middle\" fill=\"#555\">%d</text>\n",
		        SHARES + SHARES_WIDTH * percent / 100, TOP - 24, bottom,
		        SHARES + SHARES_WIDTH * percent / 100, TOP - 30, percent);
}

/* The value stands on white, so that no grid line runs through it. */
static void bar(FILE *out, double x, double y, double width, const char *how, const char *value)
{
	fprintf(out,
	        "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%d\" fill=\"%s\" "
	        "stroke=\"#444\"/><text x=\"%.1f\" y=\"%.1f\" font-size=\"12\" stroke=\"#fff\" "
	        "stroke-width=\"3\" paint-order=\"stroke\">%s</text>\n",
	        x, y, width, BAR, how, x + width + 6, y + 11, value);
}

static void row(FILE *out, const struct axis *x, const struct arm_result *a, enum arm arm, int y)
{
	char value[48], p99[24];
	double share = fmin(a->share, 1.05);

	fprintf(out, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\" font-size=\"12\">%s</text>\n",
	        BARS - 8, y + 11, arm_name[arm]);
	snprintf(value, sizeof value, "%s%s", duration(p99, sizeof p99, a->p99_us),
	         a->of[0] ? ", another run" : "");
	if (a->requests)
		bar(out, BARS, y, place(x, a->p99_us), fill[arm], value);
	else if (a->failures)
		fprintf(out, "<text x=\"%d\" y=\"%d\" font-size=\"12\">%s</text>\n", BARS + 6,
		        y + 11, a->starved == a->failures ? "did not end in time" : "failed");
	snprintf(value, sizeof value, "%.1f", 100 * a->share);
	if (a->has_share && arm != ARM_ALONE)
		bar(out, SHARES, y, fmax(SHARES_WIDTH * share, 0.5), fill[arm], value);
}

void report_svg(FILE *out, const struct report *r)
{
	struct axis x = axis_of(r);
	int y = TOP, bottom = TOP;

	for (unsigned i = 0; i < r->ncells; i++)
		bottom += cell_height(&r->cell[i]);
	head(out, r, bottom + 24);
	legend(out);
	axes(out, &x, bottom + 4);
	for (unsigned i = 0; i < r->ncells; i++) {
		const struct cell_result *c = &r->cell[i];

		if (!cell_height(c))
			continue;
		fprintf(out,
		        "<text x=\"%d\" y=\"%d\" font-weight=\"bold\" stroke=\"#fff\" "
		        "stroke-width=\"3\" paint-order=\"stroke\">",
		        LEFT, y + HEAD - 10);
		text(out, c->cell->about);
		fputs("</text>\n", out);
		y += HEAD;
		for (enum arm arm = 0; arm < ARMS; arm++)
			if (shown(c, arm)) {
				row(out, &x, &c->arm[arm], arm, y - 3);
				y += ROW;
			}
	}
	fputs("</svg>\n", out);
}
